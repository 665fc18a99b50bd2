# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0

# In a CUDA build, what starts Kokkos needs a GPU: it has this label, and runs through this script.
set(Carousel_GPU_LABEL "")
set(Carousel_GPU_RUNNER "")
if(Carousel_ENABLE_CUDA)
  set(Carousel_GPU_LABEL gpu)
  set(Carousel_GPU_RUNNER bash ${PROJECT_SOURCE_DIR}/tests/gpu_or_skip.sh)
endif()

# What ctest runs, without the program itself.
add_custom_target(test_programs)

# carousel_test(NAME folder.unit SOURCES ... LINKS ... [KOKKOS | MPI RANKS 1 4 ...]
#               [LONG 8 ...] [KERNELS] [LABELS ...] [TIMEOUT seconds])
# registers one GoogleTest executable. KOKKOS: its main starts Kokkos, and in a CUDA build the test
# carries the label gpu. MPI: it runs once per number in RANKS and in LONG, as folder.unit.np4; those
# in LONG have the label long, which tests/run.sh leaves out unless asked for all. Without either it
# has the label login, of all that needs neither GPU nor driver, launcher or network. Nothing is run
# at build time, so that a build without a GPU can register tests that need one.
function(carousel_test)
  cmake_parse_arguments(arg "KOKKOS;MPI;KERNELS" "NAME;TIMEOUT" "SOURCES;LINKS;LABELS;RANKS;LONG" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  string(REPLACE "." "_" target "test_${arg_NAME}")
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_LINKS} GTest::gmock)
  add_dependencies(test_programs ${target})
  # What is tested is optimised in its library; optimising GoogleTest's templates took most of the
  # time to build. KERNELS are templates themselves.
  if(NOT arg_KERNELS AND NOT Carousel_ENABLE_CUDA)
    target_compile_options(${target} PRIVATE -O1)
  endif()
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)

  set(labels ${arg_LABELS})
  set(wrapper "")
  if(arg_KOKKOS OR arg_MPI)
    carousel_engine_target(${target})
    target_link_libraries(${target} PRIVATE Carousel::$<IF:$<BOOL:${arg_MPI}>,mpi,kokkos>_main)
    list(APPEND labels ${Carousel_GPU_LABEL})
    set(wrapper ${Carousel_GPU_RUNNER})
  else()
    target_link_libraries(${target} PRIVATE GTest::gtest_main)
    list(APPEND labels login)
  endif()
  if(NOT arg_MPI)
    add_test(NAME ${arg_NAME} COMMAND ${wrapper} $<TARGET_FILE:${target}>)
    carousel_test_properties(${arg_NAME} ${arg_TIMEOUT} 1 unit ${labels})
    return()
  endif()
  foreach(ranks ${arg_RANKS} ${arg_LONG})
    set(name ${arg_NAME}.np${ranks})
    set(long "")
    if(ranks IN_LIST arg_LONG)
      set(long long)
    endif()
    add_test(NAME ${name} COMMAND ${wrapper} ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks}
                                  $<TARGET_FILE:${target}>)
    carousel_test_properties(${name} ${arg_TIMEOUT} ${ranks} mpi ${long} ${labels})
  endforeach()
endfunction()

# What every test has: labels, a time limit, one thread per device so that ranks do not crowd each
# other, and 125 as the word for skipped, which no exit code of Carousel is.
function(carousel_test_properties name timeout ranks)
  if(Carousel_SANITIZE)
    math(EXPR timeout "10 * ${timeout}")  # sanitizers take their time
  endif()
  set_tests_properties(${name} PROPERTIES
    LABELS "${ARGN}" TIMEOUT ${timeout} PROCESSORS ${ranks} SKIP_RETURN_CODE 125
    ENVIRONMENT "OMP_NUM_THREADS=1;OMP_PROC_BIND=false;KOKKOS_DISABLE_WARNINGS=1")
endfunction()
