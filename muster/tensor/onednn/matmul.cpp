#include <string_view>

#include "muster/tensor/onednn/primitive.h"

namespace muster::onednn {
namespace {

// Of `batch` matrices, one after another, as they lie: transposed ones are seen through their strides.
Desc matrices(std::int64_t batch, std::int64_t rows, std::int64_t columns, bool transposed,
              dnnl::memory::data_type type) {
  const Dims strides = transposed ? Dims{rows * columns, 1, rows} : Dims{rows * columns, columns, 1};
  return Desc({batch, rows, columns}, type, strides);
}

dnnl::primitive_attr attributes_with(kernels::Activation activation) {
  dnnl::primitive_attr attr = attributes();
  if (activation == kernels::Activation::none) return attr;
  dnnl::post_ops after;
  after.append_eltwise(
      activation == kernels::Activation::relu ? dnnl::algorithm::eltwise_relu : dnnl::algorithm::eltwise_tanh,
      0.0F, 0.0F);
  attr.set_post_ops(after);
  return attr;
}

}  // namespace

PrimitivePtr make_matmul(const PrimitiveSetting& setting, const MatmulProblem& problem) {
  return tried(setting.threads, [&]() -> PrimitivePtr {
    const auto [m, n, k, transpose_a, transpose_b] = problem.size;
    const auto type = data_type(setting.dtype);
    const Desc a = matrices(problem.batch, m, k, transpose_a, type);
    const Desc b = matrices(problem.batch, k, n, transpose_b, type);
    const Desc c = matrices(problem.batch, m, n, false, data_type(setting.result));
    const dnnl::primitive_attr attr = attributes_with(problem.activation);
    std::vector<Argument> inputs{{DNNL_ARG_SRC, a, 0}, {DNNL_ARG_WEIGHTS, b, 1}};
    dnnl::matmul::primitive_desc pd;
    if (problem.bias) {
      const Desc bias = matrices(1, 1, n, false, data_type(*problem.bias));
      pd = dnnl::matmul::primitive_desc(engine(), a, b, bias, c, attr);
      inputs.push_back({DNNL_ARG_BIAS, bias, 2});
    } else {
      pd = dnnl::matmul::primitive_desc(engine(), a, b, c, attr);
    }
    if (std::string_view(pd.impl_info_str()).starts_with("ref")) return nullptr;
    const auto made = std::make_shared<DnnlPrimitive>(dnnl::matmul(pd), pd.scratchpad_desc(), inputs,
                                                      std::vector<Argument>{{DNNL_ARG_DST, c, 0}});
    made->input_formats.clear();  // strides are how it looks at them; they lie plainly
    made->output_formats.clear();
    return made;
  });
}

}  // namespace muster::onednn
