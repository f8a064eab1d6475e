// Private to the plugin: a primitive of oneDNN behind the interface of tensor.
#pragma once

#include <dnnl.hpp>
#include <vector>

#include "muster/tensor/onednn/formats.h"
#include "muster/tensor/primitives.h"

namespace muster::onednn {

const dnnl::engine& engine();
// Scratch memory comes from the caller, so that all primitives of a plan share it.
dnnl::primitive_attr attributes();
// The number of threads of parallel loops on this thread: oneDNN reads it when it makes a primitive and when
// it runs one.
void use_threads(int threads);

// One argument of a primitive: its id, and the input or output of the op that it is.
struct Argument {
  int id = 0;
  Desc desc;
  std::size_t index = 0;
};

class DnnlPrimitive : public Primitive {
 public:
  // Takes formats and the size of scratch from the arguments and `scratchpad`.
  DnnlPrimitive(dnnl::primitive primitive, const Desc& scratchpad, const std::vector<Argument>& inputs,
                const std::vector<Argument>& outputs);
  bool run(std::byte* const* inputs, std::byte* const* outputs, std::byte* scratch,
           int threads) const override;

 private:
  struct Bound {
    dnnl::memory memory;
    bool is_output = false;
    std::size_t index = 0;
  };
  void bind(const Argument& argument, bool is_output);

  dnnl::primitive primitive_;
  std::vector<Bound> bound_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

// Runs `make`; null when the library refuses.
template <class Make>
PrimitivePtr tried(int threads, const Make& make) {
  use_threads(threads);
  try {
    return make();
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

PrimitivePtr make_conv2d(const PrimitiveSetting&, const kernels::Conv2dSize&, Direction, bool bias,
                         bool relu);
// By code of the library's own, or null.
PrimitivePtr make_fast_conv2d(const PrimitiveSetting&, const kernels::Conv2dSize&, Direction, bool bias,
                              bool relu);
// Null where channels of a group are whole blocks or no few groups are, or where everything has to be plain.
PrimitivePtr make_joined_groups(const PrimitiveSetting&, const kernels::Conv2dSize&, Direction, bool bias,
                                bool relu);
// Null where channels share kernels, or where everything has to be plain.
PrimitivePtr make_depthwise_grad_weight(const PrimitiveSetting&, const kernels::Conv2dSize&);
PrimitivePtr make_conv3d(const PrimitiveSetting&, const kernels::Conv3dSize&, Direction);
PrimitivePtr make_max_pool2d(const PrimitiveSetting&, const kernels::Pool2dSize&, Direction);
PrimitivePtr make_avg_pool2d(const PrimitiveSetting&, const kernels::Pool2dSize&, Direction);
PrimitivePtr make_batch_norm(const PrimitiveSetting&, const kernels::BatchNormSize&, Direction, bool relu);
PrimitivePtr make_matmul(const PrimitiveSetting&, const MatmulProblem&);
PrimitivePtr make_reorder(const FormatPtr& from, const FormatPtr& to, int threads);

}  // namespace muster::onednn
