// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/layers/cudnn_double.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>

#include "core/base/bfloat16.hpp"

namespace {

using carousel::Bfloat16;
using carousel::test::CudnnEngine;

struct Content;
using Shared = std::shared_ptr<Content>;

/// Of an attribute, in whichever form its type has.
struct Value {
  std::vector<std::int64_t> numbers;
  std::vector<void*> pointers;
  std::vector<Shared> descriptors;
};

/// What a descriptor refers to lives as long as it does, as in cuDNN.
struct Content {
  cudnnBackendDescriptorType_t type = {};
  bool finalised = false;
  std::map<int, Value> attributes = {};
  std::size_t engine = 0;  // of engines, their configurations and plans

  [[nodiscard]] const Value& at(cudnnBackendAttributeName_t name) const {
    return attributes.at(name);
  }
  [[nodiscard]] std::int64_t number(cudnnBackendAttributeName_t name,
                                    std::int64_t otherwise) const {
    const auto found = attributes.find(name);
    return found == attributes.end() ? otherwise : found->second.numbers.at(0);
  }
  [[nodiscard]] const Shared& descriptor(cudnnBackendAttributeName_t name) const {
    return at(name).descriptors.at(0);
  }
};

struct Refusal {
  cudnnBackendDescriptorType_t operation;
  int type;  // -1: any
};

struct Handle {
  cudaStream_t stream = nullptr;
};

carousel::test::CudnnCalls calls;     // NOLINT: one library per process
std::vector<CudnnEngine> engines(1);  // NOLINT
std::vector<Refusal> refusals;        // NOLINT

/// A refusal by the library, whose reason says what is wrong with the call.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};
std::string last_error;  // NOLINT

void require(bool holds, const char* what) {
  if (!holds) throw Refused(what);
}

template <class Call>
cudnnStatus_t guarded(const Call& call) {
  try {
    call();
    return CUDNN_STATUS_SUCCESS;
  } catch (const std::exception& error) {
    last_error = error.what();
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
}

std::size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_FRACTION:
      return 16;
    default:
      return 4;
  }
}

Shared& content(void* descriptor) {
  return *static_cast<Shared*>(descriptor);
}

Value read_value(cudnnBackendAttributeType_t type, std::int64_t count, const void* from) {
  Value value;
  const auto* bytes = static_cast<const std::byte*>(from);
  for (std::int64_t k = 0; k < count; ++k, bytes += size_of(type)) {
    if (type == CUDNN_TYPE_HANDLE || type == CUDNN_TYPE_VOID_PTR) {
      std::memcpy(&value.pointers.emplace_back(), bytes, sizeof(void*));
    } else if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
      void* descriptor = nullptr;
      std::memcpy(&descriptor, bytes, sizeof(descriptor));
      require(content(descriptor)->finalised, "a descriptor that is not finalised");
      value.descriptors.push_back(content(descriptor));
    } else if (type == CUDNN_TYPE_FLOAT || type == CUDNN_TYPE_DOUBLE) {
      double number = 0;
      float single = 0;
      std::memcpy(&single, bytes, sizeof(single));
      if (type == CUDNN_TYPE_DOUBLE) std::memcpy(&number, bytes, sizeof(number));
      const double given = type == CUDNN_TYPE_DOUBLE ? number : double{single};
      require(given == std::floor(given), "a factor that is no integer");
      value.numbers.push_back(static_cast<std::int64_t>(given));
    } else {
      std::int64_t number = 0;
      std::memcpy(&number, bytes, std::min(size_of(type), sizeof(number)));
      value.numbers.push_back(number);
    }
  }
  return value;
}

// ---- Tensors ------------------------------------------------------------------------------------

using Index = std::vector<std::int64_t>;

std::int64_t elements(const Index& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

std::size_t bytes_of(cudnnDataType_t type) {
  return type == CUDNN_DATA_BFLOAT16 ? 2 : type == CUDNN_DATA_DOUBLE ? 8 : 4;
}

double load(cudnnDataType_t type, const void* data, std::int64_t index) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
      return static_cast<const float*>(data)[index];
    case CUDNN_DATA_DOUBLE:
      return static_cast<const double*>(data)[index];
    case CUDNN_DATA_INT32:
      return static_cast<const std::int32_t*>(data)[index];
    case CUDNN_DATA_BFLOAT16:
      return carousel::to_float(static_cast<const Bfloat16*>(data)[index]);
    default:
      throw Refused("a type of numbers that nobody here has");
  }
}
void store(cudnnDataType_t type, void* data, std::int64_t index, double value) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
      static_cast<float*>(data)[index] = static_cast<float>(value);
      return;
    case CUDNN_DATA_DOUBLE:
      static_cast<double*>(data)[index] = value;
      return;
    case CUDNN_DATA_BFLOAT16:
      static_cast<Bfloat16*>(data)[index] = carousel::to_bfloat16(static_cast<float>(value));
      return;
    default:
      throw Refused("a type of numbers that nobody here has");
  }
}

/// A tensor of a graph: in the memory that it was given, or, where it is virtual, in full numbers.
struct Place {
  Index dims;
  Index strides;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  void* data = nullptr;
  std::vector<double> numbers = {};

  /// Where dims are 1 all indices mean the same number.
  [[nodiscard]] std::int64_t offset(const Index& index) const {
    std::int64_t sum = 0;
    for (std::size_t d = 0; d < dims.size(); ++d) sum += dims[d] == 1 ? 0 : index[d] * strides[d];
    return sum;
  }
  [[nodiscard]] double number_at(std::int64_t place) const {
    return data == nullptr ? numbers[static_cast<std::size_t>(place)] : load(type, data, place);
  }
  [[nodiscard]] double get(const Index& index) const { return number_at(offset(index)); }
  void set(const Index& index, double value) {
    if (data == nullptr)
      numbers[static_cast<std::size_t>(offset(index))] = value;
    else
      store(type, data, offset(index), value);
  }
};

Index packed(const Index& dims) {
  Index strides(dims.size());
  std::int64_t step = 1;
  for (std::size_t d = dims.size(); d-- > 0; step *= dims[d]) strides[d] = step;
  return strides;
}

bool overlaps(const Place& place) {
  std::vector<std::pair<std::int64_t, std::int64_t>> order;  // stride and count
  for (std::size_t d = 0; d < place.dims.size(); ++d)
    if (place.dims[d] > 1) order.emplace_back(place.strides[d], place.dims[d]);
  std::ranges::sort(order);
  std::int64_t end = 1;
  for (const auto& [stride, count] : order) {
    if (stride < end) return true;
    end = stride * count;
  }
  return false;
}

template <class Visit>
void for_each_index(const Index& dims, const Visit& visit) {
  Index index(dims.size(), 0);
  for (std::int64_t k = 0; k < elements(dims); ++k) {
    visit(index);
    for (std::size_t d = dims.size(); d-- > 0;) {
      if (++index[d] < dims[d]) break;
      index[d] = 0;
    }
  }
}

// ---- Operations ---------------------------------------------------------------------------------

class Interpreter {
 public:
  Interpreter(const Content& pack, std::span<std::byte> workspace) : workspace_(workspace) {
    const Value& ids = pack.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const Value& pointers = pack.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    require(ids.numbers.size() == pointers.pointers.size(), "pointers without numbers");
    for (std::size_t k = 0; k < ids.numbers.size(); ++k)
      memory_[ids.numbers[k]] = pointers.pointers[k];
  }

  /// In an order in which all that is read was written before.
  void run(const Content& graph) {
    std::vector<Shared> left = graph.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).descriptors;
    for (const Shared& operation : left) mark_results(*operation, false);
    while (!left.empty()) {
      const auto next =
          std::ranges::find_if(left, [&](const Shared& operation) { return is_ready(*operation); });
      require(next != left.end(), "a graph in a circle");
      run_operation(**next);
      left.erase(next);
    }
  }

 private:
  struct Names {
    std::vector<cudnnBackendAttributeName_t> reads;
    std::vector<cudnnBackendAttributeName_t> writes;
  };
  static Names names_of(const Content& operation) {
    switch (operation.type) {
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        return {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W},
                {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y}};
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        return {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W},
                {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX}};
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        return {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
                {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW}};
      case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        return {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                 CUDNN_ATTR_OPERATION_POINTWISE_TDESC},
                {CUDNN_ATTR_OPERATION_POINTWISE_YDESC}};
      case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        return {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC},
                {CUDNN_ATTR_OPERATION_MATMUL_CDESC}};
      case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        return {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC}, {CUDNN_ATTR_OPERATION_REDUCTION_YDESC}};
      case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        return {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC}, {CUDNN_ATTR_OPERATION_RESHAPE_YDESC}};
      case CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR:
        return {{CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC,
                 CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC},
                {CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC}};
      default:
        throw Refused(fmt::format("operation {}", static_cast<int>(operation.type)));
    }
  }
  static std::int64_t id_of(const Content& tensor) {
    return tensor.at(CUDNN_ATTR_TENSOR_UNIQUE_ID).numbers.at(0);
  }

  void mark_results(const Content& operation, bool are_there) {
    for (const auto name : names_of(operation).writes)
      results_[id_of(*operation.descriptor(name))] = are_there;
  }
  [[nodiscard]] bool is_ready(const Content& operation) const {
    return std::ranges::all_of(names_of(operation).reads, [&](auto name) {
      const auto tensor = operation.attributes.find(name);
      if (tensor == operation.attributes.end()) return true;
      const auto result = results_.find(id_of(*tensor->second.descriptors.at(0)));
      return result == results_.end() || result->second;
    });
  }

  Place& place(const Content& tensor) {
    const std::int64_t id = id_of(tensor);
    const auto known = places_.find(id);
    if (known != places_.end()) return known->second;
    Place made;
    made.dims = tensor.at(CUDNN_ATTR_TENSOR_DIMENSIONS).numbers;
    made.strides = tensor.at(CUDNN_ATTR_TENSOR_STRIDES).numbers;
    made.type = static_cast<cudnnDataType_t>(tensor.number(CUDNN_ATTR_TENSOR_DATA_TYPE, 0));
    require(made.dims.size() == made.strides.size(), "dimensions without strides");
    if (tensor.number(CUDNN_ATTR_TENSOR_IS_VIRTUAL, 0) != 0) {
      // The front end gives some strides that nobody reads, and in which numbers share their
      // places.
      if (overlaps(made)) made.strides = packed(made.dims);
      std::int64_t last = 0;
      for (std::size_t d = 0; d < made.dims.size(); ++d)
        last += (made.dims[d] - 1) * made.strides[d];
      made.numbers.resize(static_cast<std::size_t>(last) + 1);
    } else {
      const auto given = memory_.find(id);
      require(given != memory_.end() && given->second != nullptr, "a tensor without memory");
      made.data = given->second;
      const bool by_value = tensor.number(CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0) != 0;
      const std::int64_t alignment = tensor.number(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1);
      require(by_value || reinterpret_cast<std::uintptr_t>(made.data) %
                                  static_cast<std::uintptr_t>(alignment) ==
                              0,
              "memory that is aligned less than was promised");
      const auto address = reinterpret_cast<std::byte*>(made.data);
      require(workspace_.empty() || address + bytes_of(made.type) <= workspace_.data() ||
                  address >= workspace_.data() + workspace_.size(),
              "a tensor in the workspace");
    }
    return places_.emplace(id, std::move(made)).first->second;
  }

  static std::string dims_of(const Place& place) {
    return fmt::format("{}", fmt::join(place.dims, "x"));
  }
  static const char* type_of(const Place& place) {
    return place.type == CUDNN_DATA_BFLOAT16 ? "bf16"
           : place.type == CUDNN_DATA_FLOAT  ? "fp32"
                                             : "fp64";
  }

  void run_operation(const Content& operation) {
    const Names names = names_of(operation);
    Place& result = place(*operation.descriptor(names.writes[0]));
    const Place& first = place(*operation.descriptor(names.reads[0]));
    const bool has_second = names.reads.size() > 1 && operation.attributes.contains(names.reads[1]);
    const Place& second = has_second ? place(*operation.descriptor(names.reads[1])) : first;
    std::string name;
    switch (operation.type) {
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        check_factors(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
        convolve(*operation.descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC), first,
                 second, result, result);
        name = "forward";
        break;
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        check_factors(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
        convolve(*operation.descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC), result,
                 second, first, result);
        name = "d_input";
        break;
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        check_factors(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
        convolve(*operation.descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC),
                 first, result, second, result);
        name = "d_weights";
        break;
      case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        name = point_by_point(*operation.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR),
                              first, second, chooser(operation, first), result);
        break;
      case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        multiply(first, second, result);
        name = "matmul";
        break;
      case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        name = reduce(static_cast<cudnnReduceTensorOp_t>(
                          operation.descriptor(CUDNN_ATTR_OPERATION_REDUCTION_DESC)
                              ->number(CUDNN_ATTR_REDUCTION_OPERATOR, -1)),
                      first, result);
        break;
      case CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR:
        attend(first, second, place(*operation.descriptor(names.reads[2])),
               place(*operation.descriptor(names.reads[3])), result,
               place(*operation.descriptor(names.writes[1])));
        name = "attention";
        break;
      default:
        // The same memory with other dimensions.
        for_each_index(result.dims, [&](const Index& index) {
          result.set(index, first.number_at(result.offset(index)));
        });
        name = "reshape";
    }
    mark_results(operation, true);
    calls.runs.push_back(fmt::format("{} {}{} = {} {}", name, dims_of(first),
                                     has_second ? " " + dims_of(second) : "", dims_of(result),
                                     type_of(result)));
  }

  static void check_factors(const Content& operation, cudnnBackendAttributeName_t alpha,
                            cudnnBackendAttributeName_t beta) {
    require(operation.number(alpha, 1) == 1 && operation.number(beta, 0) == 0,
            "factors other than 1 and 0");
  }

  /// One of the tensors x [n, c, h, w], w [k, c, r, s] and y [n, k, p, q] is the result.
  static void convolve(const Content& spec, const Place& x, const Place& w, const Place& y,
                       Place& result) {
    const Index& pad = spec.at(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS).numbers;
    const Index& stride = spec.at(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES).numbers;
    require(spec.number(CUDNN_ATTR_CONVOLUTION_CONV_MODE, -1) == CUDNN_CROSS_CORRELATION,
            "a convolution that mirrors its window");
    require(pad == spec.at(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS).numbers, "two paddings");
    for (const std::int64_t dilation : spec.at(CUDNN_ATTR_CONVOLUTION_DILATIONS).numbers)
      require(dilation == 1, "a dilation");
    require(x.dims[0] == y.dims[0] && x.dims[1] == w.dims[1] && w.dims[0] == y.dims[1],
            "shapes of no convolution");
    for (std::size_t d = 2; d < 4; ++d)
      require((x.dims[d] + 2 * pad[d - 2] - w.dims[d]) / stride[d - 2] + 1 == y.dims[d],
              "sizes of no convolution");
    for (const Place* each : {&x, &w, &y})
      require(each->strides[1] == 1, "channels that do not lie side by side");
    std::vector<double> sums(static_cast<std::size_t>(elements(result.dims)));
    const Place total = {result.dims, packed(result.dims), CUDNN_DATA_DOUBLE, sums.data()};
    for_each_index(y.dims, [&](const Index& o) {
      for (std::int64_t c = 0; c < w.dims[1]; ++c) {
        for (std::int64_t r = 0; r < w.dims[2]; ++r) {
          for (std::int64_t s = 0; s < w.dims[3]; ++s) {
            const std::int64_t h = o[2] * stride[0] + r - pad[0];
            const std::int64_t v = o[3] * stride[1] + s - pad[1];
            if (h < 0 || v < 0 || h >= x.dims[2] || v >= x.dims[3]) continue;
            const Index in = {o[0], c, h, v};
            const Index tap = {o[1], c, r, s};
            const Index& to = &result == &y ? o : &result == &x ? in : tap;
            const double a = &result == &x ? y.get(o) : x.get(in);
            const double b = &result == &w ? y.get(o) : w.get(tap);
            sums[static_cast<std::size_t>(total.offset(to))] += a * b;
          }
        }
      }
    });
    for_each_index(result.dims, [&](const Index& index) { result.set(index, total.get(index)); });
  }

  /// What a choice between two tensors goes by.
  const Place& chooser(const Content& operation, const Place& otherwise) {
    if (!operation.attributes.contains(CUDNN_ATTR_OPERATION_POINTWISE_TDESC)) return otherwise;
    return place(*operation.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_TDESC));
  }

  static std::string point_by_point(const Content& spec, const Place& x, const Place& b,
                                    const Place& t, Place& y) {
    const auto mode = static_cast<cudnnPointwiseMode_t>(spec.number(CUDNN_ATTR_POINTWISE_MODE, -1));
    const auto with = [&](const char* name, const auto& compute) -> std::string {
      for_each_index(
          y.dims, [&](const Index& index) { y.set(index, compute(x.get(index), b.get(index))); });
      return name;
    };
    switch (mode) {
      case CUDNN_POINTWISE_ADD:
        return with("add", [](double l, double r) { return l + r; });
      case CUDNN_POINTWISE_SUB:
        return with("sub", [](double l, double r) { return l - r; });
      case CUDNN_POINTWISE_MUL:
        return with("mul", [](double l, double r) { return l * r; });
      case CUDNN_POINTWISE_DIV:
        return with("div", [](double l, double r) { return l / r; });
      case CUDNN_POINTWISE_MAX:
        return with("max", [](double l, double r) { return std::max(l, r); });
      case CUDNN_POINTWISE_EXP:
        return with("exp", [](double l, double) { return std::exp(l); });
      case CUDNN_POINTWISE_LOG:
        return with("log", [](double l, double) { return std::log(l); });
      case CUDNN_POINTWISE_RELU_FWD:
        return with("relu", [](double l, double) { return std::max(l, 0.0); });
      case CUDNN_POINTWISE_GEN_INDEX: {
        const auto axis = static_cast<std::size_t>(spec.number(CUDNN_ATTR_POINTWISE_AXIS, -1));
        require(axis < y.dims.size(), "an index along no axis");
        for_each_index(y.dims,
                       [&](const Index& index) { y.set(index, static_cast<double>(index[axis])); });
        return "index";
      }
      case CUDNN_POINTWISE_CMP_GE:
        return with("ge", [](double l, double r) { return l >= r ? 1.0 : 0.0; });
      case CUDNN_POINTWISE_BINARY_SELECT:
        for_each_index(y.dims, [&](const Index& index) {
          y.set(index, t.get(index) != 0 ? x.get(index) : b.get(index));
        });
        return "select";
      case CUDNN_POINTWISE_IDENTITY:
        return with("identity", [](double l, double) { return l; });
      default:
        throw Refused(fmt::format("pointwise mode {}", static_cast<int>(mode)));
    }
  }

  static void multiply(const Place& a, const Place& b, Place& c) {
    const std::size_t last = c.dims.size() - 1;
    for_each_index(c.dims, [&](const Index& to) {
      Index left = to;
      Index right = to;
      double sum = 0;
      for (std::int64_t k = 0; k < a.dims[last]; ++k) {
        left[last] = right[last - 1] = k;
        sum += a.get(left) * b.get(right);
      }
      c.set(to, sum);
    });
  }

  static std::string reduce(cudnnReduceTensorOp_t mode, const Place& x, Place& y) {
    require(mode == CUDNN_REDUCE_TENSOR_ADD || mode == CUDNN_REDUCE_TENSOR_MAX, "a reduction");
    const bool adds = mode == CUDNN_REDUCE_TENSOR_ADD;
    for_each_index(y.dims, [&](const Index& index) { y.set(index, adds ? 0.0 : -HUGE_VAL); });
    for_each_index(x.dims, [&](const Index& index) {
      y.set(index, adds ? y.get(index) + x.get(index) : std::max(y.get(index), x.get(index)));
    });
    return adds ? "sum" : "largest";
  }

  /// y_i = sum_j p_ij v_j, p being the softmax of q k scale, and the logarithms of its sums.
  static void attend(const Place& q, const Place& k, const Place& v, const Place& scale, Place& y,
                     Place& log_sums) {
    const double factor = scale.get(Index(scale.dims.size(), 0));
    for_each_index(log_sums.dims, [&](const Index& query) {
      std::vector<double> scores(static_cast<std::size_t>(k.dims[2]));
      const auto along = [&](std::int64_t token, std::int64_t c) {
        return Index{query[0], query[1], token, c};
      };
      for (std::int64_t j = 0; j < k.dims[2]; ++j) {
        double product = 0;
        for (std::int64_t c = 0; c < q.dims[3]; ++c)
          product += q.get(along(query[2], c)) * k.get(along(j, c));
        scores[static_cast<std::size_t>(j)] = product * factor;
      }
      const double largest = *std::ranges::max_element(scores);
      double sum = 0;
      for (const double score : scores) sum += std::exp(score - largest);
      log_sums.set(query, largest + std::log(sum));
      for (std::int64_t c = 0; c < v.dims[3]; ++c) {
        double value = 0;
        for (std::int64_t j = 0; j < k.dims[2]; ++j)
          value +=
              std::exp(scores[static_cast<std::size_t>(j)] - largest) / sum * v.get(along(j, c));
        y.set(along(query[2], c), value);
      }
    });
  }

  std::span<std::byte> workspace_;
  std::map<std::int64_t, void*> memory_;
  std::map<std::int64_t, Place> places_;
  std::map<std::int64_t, bool> results_;  // of operations, and whether they are there
};

// ---- Engines ------------------------------------------------------------------------------------

const Content& graph_of(const Content& from) {
  return *from.descriptor(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
}

cudnnBackendAttributeName_t result_of(cudnnBackendDescriptorType_t operation) {
  if (operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR)
    return CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW;
  if (operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
    return CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX;
  return CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y;
}

bool is_refused(const Content& graph) {
  for (const Shared& operation : graph.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).descriptors) {
    for (const Refusal& refusal : refusals) {
      if (operation->type != refusal.operation) continue;
      if (refusal.type < 0) return true;
      const Content& result = *operation->descriptor(result_of(operation->type));
      if (result.number(CUDNN_ATTR_TENSOR_DATA_TYPE, -1) == refusal.type) return true;
    }
  }
  return false;
}

/// Into descriptors that the caller has made.
template <class Fill>
void fill_descriptors(void* array, std::int64_t count, const Fill& fill) {
  for (std::int64_t k = 0; k < count; ++k) {
    Shared& given = content(static_cast<void**>(array)[k]);
    given = std::make_shared<Content>(*given);
    fill(*given, static_cast<std::size_t>(k));
    given->finalised = true;
  }
}

void put_number(std::int64_t number, std::int64_t* count, void* array) {
  if (count != nullptr) *count = 1;
  if (array != nullptr) std::memcpy(array, &number, sizeof(number));
}

void get_attribute(const Content& from, cudnnBackendAttributeName_t name, std::int64_t requested,
                   std::int64_t* count, void* array) {
  switch (name) {
    case CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT:
      return put_number(static_cast<std::int64_t>(engines.size()), count, array);
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
      const Shared& graph = from.descriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      const auto all = is_refused(*graph) ? 0 : static_cast<std::int64_t>(engines.size());
      *count = all;
      if (array == nullptr) return;
      fill_descriptors(array, std::min(all, requested), [&](Content& configuration, std::size_t k) {
        configuration.engine = k;
        configuration.attributes[CUDNN_ATTR_ENGINE_OPERATION_GRAPH].descriptors = {graph};
      });
      return;
    }
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      if (count != nullptr) *count = 1;
      fill_descriptors(array, 1, [&](Content& engine, std::size_t) {
        engine.engine = from.engine;
        engine.attributes = from.attributes;
      });
      return;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: {
      const auto& notes = engines.at(from.engine).notes;
      *count = static_cast<std::int64_t>(notes.size());
      if (array != nullptr && !notes.empty())
        std::memcpy(array, notes.data(), notes.size() * sizeof(notes[0]));
      return;
    }
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
      *count = 0;
      return;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      return put_number(static_cast<std::int64_t>(from.engine), count, array);
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return put_number(engines.at(from.engine).workspace, count, array);
    default:
      throw Refused(fmt::format("attribute {}", static_cast<int>(name)));
  }
}

}  // namespace

namespace carousel::test {

const CudnnCalls& cudnn_calls() {
  return calls;
}
void clear_cudnn() {
  const int open = calls.open;
  calls = {};
  calls.open = open;
  engines.assign(1, {});
  refusals.clear();
}
void offer_engines(std::vector<CudnnEngine> offered) {
  engines = std::move(offered);
}
void refuse_operation(cudnnBackendDescriptorType_t operation) {
  refusals.push_back({operation, -1});
}
void refuse_results(cudnnBackendDescriptorType_t operation, cudnnDataType_t type) {
  refusals.push_back({operation, type});
}

}  // namespace carousel::test

// ---- Of CUDA's runtime, what the front end asks and does; it finds an H100
// -----------------------

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int /*device*/) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor   ? 9
           : attribute == cudaDevAttrComputeCapabilityMinor ? 0
           : attribute == cudaDevAttrMultiProcessorCount    ? 132
                                                            : -1;
  return *value < 0 ? cudaErrorInvalidValue : cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t /*stream*/) {
  std::memset(to, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind /*kind*/,
                            cudaStream_t /*stream*/) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

// ---- What stands in cudnn.h ---------------------------------------------------------------------

std::size_t cudnnGetVersion() {
  return CUDNN_VERSION;
}
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS ? "success" : "not supported";
}
void cudnnGetLastErrorString(char* message, std::size_t size) {
  if (size == 0) return;
  std::strncpy(message, last_error.c_str(), size - 1);
  message[size - 1] = '\0';
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  ++calls.open;
  *handle = reinterpret_cast<cudnnHandle_t>(new Handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  --calls.open;
  delete reinterpret_cast<Handle*>(handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  reinterpret_cast<Handle*>(handle)->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  *stream = reinterpret_cast<Handle*>(handle)->stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* made) {
  ++calls.open;
  *made = new Shared(std::make_shared<Content>(Content{.type = type}));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  --calls.open;
  delete static_cast<Shared*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count,
                                       const void* elements) {
  return guarded([&] {
    require(!content(descriptor)->finalised, "a descriptor that is finalised already");
    content(descriptor)->attributes[name] = read_value(type, count, elements);
  });
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return guarded([&] {
    Content& made = *content(descriptor);
    if (made.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
      made.engine = made.descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->engine;
      ++calls.plans;
    }
    made.finalised = true;
  });
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t /*type*/, std::int64_t requested,
                                       std::int64_t* count, void* elements) {
  return guarded([&] { get_attribute(*content(descriptor), name, requested, count, elements); });
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t /*handle*/, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  return guarded([&] {
    const Content& configuration =
        *content(plan)->descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    const std::int64_t needed = engines.at(configuration.engine).workspace;
    void* workspace = content(pack)->at(CUDNN_ATTR_VARIANT_PACK_WORKSPACE).pointers.at(0);
    require(needed == 0 || workspace != nullptr, "no workspace");
    calls.engines.push_back(configuration.engine);
    Interpreter(*content(pack),
                {static_cast<std::byte*>(workspace), static_cast<std::size_t>(needed)})
        .run(graph_of(configuration));
  });
}
