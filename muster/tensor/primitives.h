// Kernels of a library that is loaded when they are first needed: oneDNN, on x86-64, where it is installed.
//
// A primitive is made once for given sizes and formats, and run many times. It may ask for its inputs in
// formats of its own; its caller puts a reorder before it where they differ. Nothing here loads the
// library but primitive_library(). Threads: a primitive is run by one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "muster/base/base.h"
#include "muster/tensor/format.h"
#include "muster/tensor/kernels/batch_norm.h"
#include "muster/tensor/kernels/conv2d.h"
#include "muster/tensor/kernels/conv3d.h"
#include "muster/tensor/kernels/matmul.h"
#include "muster/tensor/kernels/pool2d.h"

namespace muster {

class Primitive {
 public:
  Primitive() = default;
  Primitive(const Primitive&) = delete;
  Primitive& operator=(const Primitive&) = delete;
  virtual ~Primitive() = default;

  // False if the library failed. The addresses are in the order of the op's inputs and outputs.
  virtual bool run(std::byte* const* inputs, std::byte* const* outputs, std::byte* scratch,
                   int threads) const = 0;

  std::size_t scratch_bytes = 0;
  std::vector<FormatPtr> input_formats;
  std::vector<FormatPtr> output_formats;
};
// Null: the library has none for this.
using PrimitivePtr = std::shared_ptr<const Primitive>;

// What every primitive is made for.
struct PrimitiveSetting {
  DType dtype = DType::float32;   // float32 or bfloat16; statistics and parameters of batch_norm are float32
  DType result = DType::float32;  // of output 0: of gradients of weights it may be float32 beside bfloat16
  std::span<const FormatPtr> formats = {};  // of the inputs as they come; empty: all plain
  bool free = false;                        // it may choose formats; else everything is plain
  int threads = 1;
};

enum class Direction { forward, grad_input, grad_weight };

// Products of `batch` pairs of matrices, one behind the other.
struct MatmulProblem {
  kernels::MatmulSize size;
  std::int64_t batch = 1;
  std::optional<DType> bias = {};
  kernels::Activation activation = kernels::Activation::none;
};

// The functions of the library, one for each family of ops; inputs and outputs are those of the kernels in
// kernels/, in the order of their argument structs.
struct PrimitiveLibrary {
  std::uint32_t version = 0;  // primitive_table_version of the headers that it was built with
  std::string_view name;      // "oneDNN 3.2.0"
  // forward: x, weight[, bias] to y, with `relu` y = max(y, 0). grad_input: dy, weight to dx. grad_weight: x,
  // dy to dweight.
  PrimitivePtr (*conv2d)(const PrimitiveSetting&, const kernels::Conv2dSize&, Direction, bool bias,
                         bool relu);
  // The same of volumes.
  PrimitivePtr (*conv3d)(const PrimitiveSetting&, const kernels::Conv3dSize&, Direction);
  // x to y, positions; dy, positions to dx.
  PrimitivePtr (*max_pool2d)(const PrimitiveSetting&, const kernels::Pool2dSize&, Direction);
  // x to y; dy to dx.
  PrimitivePtr (*avg_pool2d)(const PrimitiveSetting&, const kernels::Pool2dSize&, Direction);
  // x, gamma, beta, moving mean, moving variance to y, mean, variance[, mask]; x, dy, gamma, mean,
  // variance[, mask] to dx, dgamma, dbeta. With `relu` y = max(y, 0), and the mask says where y > 0.
  PrimitivePtr (*batch_norm)(const PrimitiveSetting&, const kernels::BatchNormSize&, Direction, bool relu);
  // a, b[, bias] to c. Everything lies plainly.
  PrimitivePtr (*matmul)(const PrimitiveSetting&, const MatmulProblem&);
  // The same elements in another format; one of the two may be plain (null).
  PrimitivePtr (*reorder)(const FormatPtr& from, const FormatPtr& to, int threads);
  // The order of elements that people know by `name` ("ABcd16b16a") for such a tensor; null where there is
  // none.
  FormatPtr (*format_named)(const Shape& shape, DType dtype, std::string_view name);
};
constexpr std::uint32_t primitive_table_version = 5;

// Loads the library on the first call. Null where there is none.
const PrimitiveLibrary* primitive_library();

}  // namespace muster
