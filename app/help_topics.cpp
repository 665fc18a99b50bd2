// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "app/help_topics.hpp"

#include <fmt/core.h>

#include <cstring>

#include "app/schema.hpp"
#include "core/base/check.hpp"
#include "core/base/text.hpp"
#include "core/plan/placements/kinds.hpp"

namespace carousel {
namespace {

constexpr const char* files = R"(A run writes one folder, run.output of its deck:

  run.h5               deck, versions, plan, steps, evaluations; links to ranks/
  ranks/0000.h5 ...    actions, messages and memory of device 0, and so on
  metrics.jsonl        one line per step and evaluation, written as they happen
  status.json          running, done, failed or diverged; the cause; steps done
  trace.json           actions and messages of the profiled steps, for Perfetto
  checkpoints/last.h5  a link to the newest of step-00000044.h5 and others, or
                       where there are no symbolic links a file of HDF5 links

In run.h5, for h5py:

  /info                attributes: versions, git hash, seed, deck with defaults
  /plan                what was predicted: bytes per category, messages per step
  /steps/NAME          loss, metrics such as accuracy, learning_rate, seconds
                       and others of every step
  /evaluations/NAME    step, epoch, loss and metrics on the test set
  /receipts/S          a digest of stage S after every update
  /ranks/R/actions     a row each: kind, step, stage, piece, version, begin, end
  /ranks/R/messages    when each message was posted, completed and waited for
  /ranks/R/memory      bytes of every category, a row per action
  /audit               only with profile.audit: all samples and parameters; of a
                       part that goes on, what it found beside parameters, too
  /parts               a row per start of the program that went on with the run

Rows of actions, messages and memory exist for the profiled steps alone
(profile.steps). Links to ranks/ let h5py see one file. Copy the folder as a
whole: where a linked file is missing, HDF5 takes one of that name from the
current folder. inspect says what is missing; diff and verify refuse.

Overwriting. A run never starts in a folder that holds another one. If several
runs start in one folder, only one proceeds. train --overwrite deletes the files
that a run writes, by their names: no others, nothing behind a link, and nothing
that the new run reads. It does not delete a run that may be alive: status.json
says "running", and its process lives or belongs to another host. If you know
that the run has ended, remove status.json. A run that was killed in its first
moment may leave status.json.lock; remove it, too.

Pauses. A run pauses after every epoch and wherever [checkpoint] asks for a
checkpoint. Records then reach the disk. Pauses change no number. Every device
writes what it owns into one checkpoint, without a copy in memory; ranks must
therefore share the run folder. Checkpoints hold /parameters, /previous (cyclic
rules), /predicted (parallel.predict), /buffers and /optimizer; a digest of each
tensor, which is checked when it is read; /inputs, which says what the model saw
(carousel help restart).

Checks. A receipt is a 64-bit digest of a stage's parameters, followed by its
running statistics. verify makes the plan again, from the deck and /plan/basis
alone, and compares every row with it: kinds, order and versions of actions,
both ends and bytes of messages, memory to the byte, learning rates. The
receipts of a checkpoint's step must be those of its parameters. Losses and
what an optimizer keeps have nothing in a run to be checked against; another run
of the same deck has the same. diff compares the receipts of two runs, and names
the first update that left different bits, and what in deck, data or program may
explain it. In a stage without running statistics, parameters in /audit can be
checked against its receipts: digest() of core/base/digest.hpp over the stage's
parameters, one after the other in the order of the model, after each update.
)";

constexpr const char* faults =
    R"(A mistake ends with one line that says where it is and what to do, and with an
exit code (carousel help exit-codes). No rank hangs because another one failed.

A rank dies       All others end within seconds, with exit code 77. Every rank
                  says what it was doing and what it waited for, and status.json
                  names the rank that was lost.
A rank is stuck   If no rank makes progress for run.watchdog_seconds (300), all
                  end in the same way. A rank at its files has ten times as
                  long. While the system writes a dump of its memory, a dead
                  rank counts as stuck. Time in which the whole training is
                  suspended does not count.
No finite loss    All devices stop after the same step, at most five steps
                  later, with exit code 76. No checkpoint is made of what is
                  not finite. With a lower rate the run goes on from the one
                  before (carousel help restart).
The disk is full  The rank that notices it says so; all end with 74.

How it works. Every rank has a thread with a TCP connection to rank 0. It does
not ask MPI, which may be what hangs. run.watchdog_seconds = 0 switches it off:
then nothing ends ranks that wait for a dead one, unless the launcher does.

At the start. Before MPI has started, nobody can tell a dead rank from a slow
one. All ranks end if not all have started within run.watchdog_seconds, or have
not met within another 30 s (less if run.watchdog_seconds is less).

At the end. Some MPI libraries do not always finish behind a finished run (MPICH
4.0 over TCP). After 20 s (less if run.watchdog_seconds is less) ranks leave
without waiting for MPI. A launcher may call that a failure (Hydra: 9), although
status.json says "done".

Launchers. A launcher that ends the other ranks first does so with an exit code
of its own, and inspect says that the run ended without a word. Under Slurm,
start ranks with srun --mpi=pmi2 for MPICH; without it, MPICH starts many worlds
of one rank, which carousel refuses.

After a fault. verify checks what the run wrote up to its last pause, and ends
with 4 if that is right. `carousel train RUNFOLDER` goes on from its newest
checkpoint (carousel help restart).
)";

constexpr const char* restart =
    R"(carousel train RUNFOLDER     goes on with what is in a run folder, by its deck;
                             key=value changes keys of it
run.resume = "auto"          in a deck: goes on where there is something, begins
                             where nothing is, and exits with 0 where all is
                             done; for jobs that are queued again
run.resume = "PATH"          begins a run in a new folder with a checkpoint of
                             another one, or goes back to it in its own folder

To stop. SIGTERM, SIGINT and SIGUSR1, to any rank, and run.wall_clock: all ranks
finish the same step, at most five steps later, write a checkpoint and end with
75; status.json says "stopped". What was asked for during an evaluation happens
behind it. A second SIGINT, more than a second later, ends at once. If a run is
killed, it goes on from its last checkpoint: [checkpoint] says how often there
is one.

Exact. A run that goes on makes the updates that it would have made, bit for
bit, wherever it was stopped, with another placement, transport or number of
ranks, too, on the same kind of processor, with dropout and any optimizer.
Learning rate, epochs and all that is not named below may be changed; then
updates are those of the new deck.

What must stay. [model], data, parallel.rule, parallel.slack, parallel.predict,
run.seed and the kind of optimizer; whatever is changed of it is refused by
name. To begin with weights alone, use train.start.

Inputs. A checkpoint tells mean, std, names of classes and the shape of images
(/inputs). eval and runs that go on refuse others. eval --as-trained takes mean
and std of the checkpoint; so does train.start, unless the deck gives its own.
Checkpoints of earlier versions do not tell, and nothing is compared.

Other micro-batches. parallel.micro_batches, parallel.passes, parallel.stages
and train.micro_batch_size may change. The rest of the epoch is divided into
steps of the new size, each sample of it used once but for an incomplete last
step. From the next epoch on, all is as in a run that always had them, with the
learning rate of that place of that epoch; numbers of steps go on counting.

One history. /steps, /evaluations and metrics.jsonl tell of the whole run, less
what was done after the checkpoint that it went on from and is done again.
/parts has a row for every start; its ranks write ranks/part-K/NNNN.h5, with
program, machine, deck and plan, to which /ranks, /receipts and /audit of run.h5
lead for the newest part. inspect shows the parts, verify judges each by its own
deck, diff compares receipts across them.

After a divergence. A run that diverged would do so again, and is refused. With
a lower train.optimizer.learning_rate, on the command line or in the deck, it
goes on from its newest checkpoint:

  carousel train RUNFOLDER train.optimizer.learning_rate=0.01

A damaged checkpoint is passed over aloud, and the one before it is taken; where
none is whole, nothing begins again without --overwrite. A run that status.json
calls "running" on another host may be alive: if that host is lost, remove
status.json.
checkpoint.keep says how many there are; checkpoint.keep_best keeps the best.
)";

constexpr const char* rules =
    R"(A training step has N micro-batches (parallel.micro_batches); the model is cut
into S stages (parallel.stages). A rule says which parameters a gradient is
computed with; carousel help placements, which device computes it.

parallel.rule
  dp          The newest, everywhere: synchronous data parallelism.
  cdp-v1      Those of the step before, everywhere.
  cdp-v2      The freshest that exist in time, so that some stages have no
              delay. Each unit of parallel.slack gives messages two more time
              steps; slack = S k is v1.
  Cyclic rules (cdp-v1, cdp-v2) keep two copies of the parameters, dp keeps one.

parallel.passes = k, in single and replicated
  A worker takes k micro-batches one after the other, as does who accumulates
  gradients: it adds up theirs first, and then those of all N / k workers are
  added up, in every placement. A gradient and a copy of the parameters travel
  once in a step, for k times as long: dp hides its sums beside the last pass
  alone, cyclic rules beside all of them. v2 decides for every pass whether its
  parameters are new. Workers take the place of micro-batches in devices and
  slots.

parallel.predict = kappa, for cyclic rules
  Who would read theta_{t-1} reads instead
  theta_{t-1} + kappa (theta_{t-1} - theta_{t-2}), made once by the device that
  updates the stage, which keeps further versions of it. Evaluations,
  checkpoints and what learns from them have theta; /predicted of a checkpoint
  is what its next step reads in place of /previous. v2, whose new reads stay as
  they are, has it without shards in all placements but sharded.

What a delay wants
  SGD with momentum b bears rates up to 2 (1 + b) / h under dp and (1 - b) / h
  under v1, of a loss with curvature h: a half without momentum, a 38th with
  0.9. Give v1
    train.optimizer.nesterov = true
    train.optimizer.clip_stage_norm = 1
  resnet20, 14 epochs of CIFAR-10, loses 1.7 points of accuracy by v1 without
  them and 0.4 with them (three seeds, dp with them 84.0%). Give AdamW
    parallel.predict = 1
  A small vision transformer loses 11 points on the digits by v1 with N = S = 8,
  and 3 with that (ten seeds, dp 90.7%). With SGD it pays above a momentum of
  0.5: 0.27 / h with 0.9, in place of 0.1 / h; without momentum 0.62 / h in
  place of 1 / h. train --validate tells what a deck of v1 leaves out.
)";

constexpr const char* placements_to_transports =
    R"(  With parallel.passes = k, N / k workers take the place of N micro-batches.
  carousel plan DECK --compare shows all of them for a deck, with formulas.

parallel.order, for dp on one device
  together    All micro-batches at once: N times the activations of one.
  accumulate  One after the other: least memory of all, no delay, but only one
              micro-batch's work at a time.

parallel.reduction, how gradients are summed
  ordered     In the order of the micro-batches: the same bits in every
              placement, transport and number of ranks.
  fast        By the library's collectives: dp, and cyclic rules within a slot
              of several micro-batches.
  overlapped  dp replicated: an all-reduce per stage, which starts as soon as
              the stage's backward is over, as buckets of PyTorch DDP do.
  owner       dp replicated: a reduction per stage, likewise, to its owner,
              which alone updates the stage and holds its optimizer state, and
              broadcasts it beside the next forward: ZeRO-1.
  local       Cyclic model: a device first adds what it computed itself; half
              of dp's volume.
  The last four agree with the first to rounding.

parallel.shards = true, in replicated and sharded
  A stage is cut among the devices of a slot (dp: all, which is ZeRO-1 or FSDP):
  each adds up, updates and keeps optimizer state for its piece. Cyclic: R rings
  of S devices run side by side, with ranks s R to s R + R - 1 in slot s, which
  should be a node. Has the bits of one device, unless reduction is fast.
  parallel.sums = "late" lets cdp-v1 run as dp runs in replicated, its sums
  beside the whole next step; any N and S.

parallel.transport
  mpi         One rank per device. A thread of every rank moves messages while
              kernels run. On slow links, all-reduces of MPICH 4.0 are faster
              with MPIR_CVAR_IALLREDUCE_INTRA_ALGORITHM=tsp_ring set. In builds
              for GPUs messages are copied to host memory, unless
              parallel.gpu_aware = true gives MPI that of GPUs.
  local       All devices in one process, in turn: no launcher, easy to debug.
  nccl        One rank and one GPU per device, in builds with NCCL: GPUs send by
              themselves, without MPI and without a copy on the host.
  rounds      Over mpi or local, messages in groups that end when all of their
              peers have called, as those of NCCL. Slower; the same bits.
)";

struct Topic {
  const char* name;
  const char* summary;
  std::string (*text)();
};

std::string placements() {
  constexpr std::size_t indent = 14;
  std::string text = "parallel.placement, and its number of devices (R = N / S)\n";
  for (const PlacementKind& kind : placement_kinds())
    text += wrapped(kind.help, indent).replace(2, std::strlen(kind.name), kind.name);
  return text + placements_to_transports;
}

std::string exit_codes() {
  std::string text = "Every command ends with one of these exit codes:\n\n";
  for (const ExitCodeMeaning& entry : exit_code_meanings)
    text += fmt::format("  {:>2}  {}\n", static_cast<int>(entry.code), entry.meaning);
  return text +
         "\nAll ranks of a training end with the same one. A launcher may report another:\n"
         "that of a rank it ended itself, or one of its own. status.json holds the run's.\n";
}

constexpr Topic topics[] = {
    {"deck", "every key of a deck, its default and its meaning", [] { return deck_help(); }},
    {"network", "how a deck lists a network of its own", help_on_lists},
    {"layers", "all kinds of layers, and their sizes", help_on_layers},
    {"rules", "which parameters gradients read; what a delay wants",
     [] { return std::string(rules); }},
    {"placements", "which device computes what, and what they exchange", placements},
    {"files", "what a run writes, and what protects and checks it",
     [] { return std::string(files); }},
    {"faults", "what happens when a rank, a network or a disk fails",
     [] { return std::string(faults); }},
    {"restart", "how runs are stopped and gone on with", [] { return std::string(restart); }},
    {"exit-codes", "what the number means that a command ends with", exit_codes},
};

}  // namespace

std::vector<std::string> help_topics() {
  std::vector<std::string> names;
  for (const Topic& topic : topics) names.emplace_back(topic.name);
  return names;
}

std::string list_of_topics() {
  std::string text = "Topics of carousel help:\n";
  for (const Topic& topic : topics) text += fmt::format("  {:<24}{}\n", topic.name, topic.summary);
  return text;
}

std::optional<std::string> help_on(std::string_view name) {
  for (const Topic& topic : topics) {
    if (name == topic.name) return topic.text();
  }
  return std::nullopt;
}

}  // namespace carousel
