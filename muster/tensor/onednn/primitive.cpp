#include "muster/tensor/onednn/primitive.h"

#include <omp.h>

#include <algorithm>
#include <utility>

namespace muster::onednn {

const dnnl::engine& engine() {
  static const dnnl::engine made(dnnl::engine::kind::cpu, 0);
  return made;
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr made;
  made.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return made;
}

void use_threads(int threads) {
  if (omp_get_max_threads() != threads) omp_set_num_threads(std::max(threads, 1));
}

namespace {

const dnnl::stream& stream() {
  static const dnnl::stream made(engine());
  return made;
}

void note_format(std::vector<FormatPtr>& formats, const Argument& argument) {
  if (formats.size() <= argument.index) formats.resize(argument.index + 1);
  formats[argument.index] = format_of(argument.desc);
}

}  // namespace

DnnlPrimitive::DnnlPrimitive(dnnl::primitive primitive, const Desc& scratchpad,
                             const std::vector<Argument>& inputs, const std::vector<Argument>& outputs)
    : primitive_(std::move(primitive)) {
  scratch_bytes = scratchpad.get_size();
  bound_.reserve(inputs.size() + outputs.size() + 1);
  for (const Argument& argument : inputs) {
    note_format(input_formats, argument);
    bind(argument, false);
  }
  for (const Argument& argument : outputs) {
    note_format(output_formats, argument);
    bind(argument, true);
  }
  // An argument that the primitive does not need would be an error.
  if (scratch_bytes > 0) bind({DNNL_ARG_SCRATCHPAD, scratchpad, 0}, false);
}

void DnnlPrimitive::bind(const Argument& argument, bool is_output) {
  bound_.push_back({dnnl::memory(argument.desc, engine(), DNNL_MEMORY_NONE), is_output, argument.index});
  arguments_.push_back({argument.id, bound_.back().memory.get()});
}

bool DnnlPrimitive::run(std::byte* const* inputs, std::byte* const* outputs, std::byte* scratch,
                        int threads) const {
  use_threads(threads);
  for (std::size_t i = 0; i < bound_.size(); ++i) {
    std::byte* const address = arguments_[i].arg == DNNL_ARG_SCRATCHPAD ? scratch
                               : bound_[i].is_output                    ? outputs[bound_[i].index]
                                                                        : inputs[bound_[i].index];
    if (dnnl_memory_set_data_handle(arguments_[i].memory, address) != dnnl_success) return false;
  }
  return dnnl_primitive_execute(primitive_.get(), stream().get(), static_cast<int>(arguments_.size()),
                                arguments_.data()) == dnnl_success;
}

PrimitivePtr make_reorder(const FormatPtr& from, const FormatPtr& to, int threads) {
  return tried(threads, [&]() -> PrimitivePtr {
    const Desc known = desc_of(from != nullptr ? from : to, {});
    const Desc row_major = plain(known.get_dims(), known.get_data_type());
    const Desc source = desc_of(from, row_major);
    const Desc target = desc_of(to, row_major);
    const dnnl::reorder::primitive_desc pd(engine(), source, engine(), target, attributes());
    return std::make_shared<DnnlPrimitive>(dnnl::reorder(pd), pd.scratchpad_desc(),
                                           std::vector<Argument>{{DNNL_ARG_FROM, source, 0}},
                                           std::vector<Argument>{{DNNL_ARG_TO, target, 0}});
  });
}

}  // namespace muster::onednn

extern "C" __attribute__((visibility("default"))) const muster::PrimitiveLibrary* muster_primitive_library() {
  using namespace muster;
  static const PrimitiveLibrary library{.version = primitive_table_version,
                                        .name = "oneDNN",
                                        .conv2d = onednn::make_conv2d,
                                        .max_pool2d = onednn::make_max_pool2d,
                                        .avg_pool2d = onednn::make_avg_pool2d,
                                        .batch_norm = onednn::make_batch_norm,
                                        .matmul = onednn::make_matmul,
                                        .reorder = onednn::make_reorder,
                                        .format_named = onednn::format_named};
  return &library;
}
