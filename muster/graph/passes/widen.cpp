#include "muster/graph/passes/widen.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "muster/tensor/kernels.h"

namespace muster::graph {
namespace {

constexpr std::size_t not_copied = static_cast<std::size_t>(-1);

// One tensor of the call.
struct Part {
  std::int64_t elements = 0;
  std::size_t offset_bytes = not_copied;  // of its copy in float32
  bool is_read = true;
  bool is_written = false;
};

struct Settings {
  void (*run)(const KernelCall&) = nullptr;
  std::shared_ptr<const void> settings;
  std::size_t scratch_offset_bytes = 0;
  std::vector<Part> inputs = {};
  std::vector<Part> outputs = {};
};

// Lays out the scratch memory of a call: the addresses, the kernel's own scratch, the copies.
class ScratchLayout {
 public:
  std::size_t take(std::size_t bytes) {
    const std::size_t place = end_;
    constexpr std::size_t alignment = Buffer::alignment_bytes;
    end_ += (bytes + alignment - 1) / alignment * alignment;
    return place;
  }
  std::size_t end() const { return end_; }

 private:
  std::size_t end_ = 0;
};

std::vector<TensorType> widened(std::span<const TensorType> types) {
  std::vector<TensorType> made(types.begin(), types.end());
  for (TensorType& type : made)
    if (type.dtype == DType::bfloat16) type.dtype = DType::float32;
  return made;
}

std::vector<Part> parts_of(std::span<const TensorType> types, ScratchLayout& places) {
  std::vector<Part> parts;
  for (const TensorType& type : types) {
    Part& part = parts.emplace_back(Part{.elements = type.shape.elements()});
    if (type.dtype == DType::bfloat16)
      part.offset_bytes = places.take(static_cast<std::size_t>(part.elements) * sizeof(float));
  }
  return parts;
}

Settings settings_for(const Op& op, const Signature& signature, const Kernel& kernel, Prepared prepared,
                      ScratchLayout& places) {
  Settings made{.run = kernel.run, .settings = std::move(prepared.settings)};
  places.take((signature.inputs.size() + signature.outputs.size()) * sizeof(std::byte*));
  made.scratch_offset_bytes = places.take(prepared.scratch_bytes);
  made.inputs = parts_of(signature.inputs, places);
  made.outputs = parts_of(signature.outputs, places);
  for (Part& output : made.outputs) output = {output.elements, output.offset_bytes, false, true};
  for (const std::size_t index : op.written)
    if (index < made.inputs.size()) made.inputs[index].is_written = true;
  if (op.sharing == Sharing::in_place) made.outputs[0].offset_bytes = made.inputs[0].offset_bytes;
  return made;
}

void run_widened(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  auto** const inputs = reinterpret_cast<std::byte**>(call.scratch);
  std::byte** const outputs = inputs + settings.inputs.size();
  for (std::size_t i = 0; i < settings.inputs.size(); ++i) {
    const Part& part = settings.inputs[i];
    inputs[i] = part.offset_bytes == not_copied ? call.inputs[i] : call.scratch + part.offset_bytes;
    if (part.offset_bytes != not_copied)
      kernels::cast(call.inputs[i], DType::bfloat16, inputs[i], DType::float32, part.elements, call.threads);
  }
  for (std::size_t i = 0; i < settings.outputs.size(); ++i) {
    const Part& part = settings.outputs[i];
    outputs[i] = part.offset_bytes == not_copied ? call.outputs[i] : call.scratch + part.offset_bytes;
  }
  KernelCall inner = call;
  inner.inputs = inputs;
  inner.outputs = outputs;
  inner.settings = settings.settings.get();
  inner.scratch = call.scratch + settings.scratch_offset_bytes;
  settings.run(inner);
  const auto round = [&](const Part& part, const std::byte* from, std::byte* to) {
    if (part.is_written && part.offset_bytes != not_copied)
      kernels::cast(from, DType::float32, to, DType::bfloat16, part.elements, call.threads);
  };
  for (std::size_t i = 0; i < settings.inputs.size(); ++i)
    round(settings.inputs[i], inputs[i], call.inputs[i]);
  for (std::size_t i = 0; i < settings.outputs.size(); ++i)
    round(settings.outputs[i], outputs[i], call.outputs[i]);
}

}  // namespace

bool has_bfloat16(const Signature& signature) {
  const auto is_one = [](const TensorType& type) { return type.dtype == DType::bfloat16; };
  return std::any_of(signature.inputs.begin(), signature.inputs.end(), is_one) ||
         std::any_of(signature.outputs.begin(), signature.outputs.end(), is_one);
}

Result<Chosen> choose_widened(const Op& op, const Signature& signature) {
  static const Kernel kernel{.name = "in float32", .usable = nullptr, .prepare = nullptr, .run = run_widened};
  const std::vector<TensorType> inputs = widened(signature.inputs);
  const std::vector<TensorType> outputs = widened(signature.outputs);
  MUSTER_TRY(Chosen chosen, choose_kernel(op, {.inputs = inputs,
                                               .outputs = outputs,
                                               .attributes = signature.attributes,
                                               .threads = signature.threads}));
  ScratchLayout places;
  auto settings = std::make_shared<const Settings>(
      settings_for(op, signature, *chosen.kernel, std::move(chosen.prepared), places));
  return Chosen{&kernel, {.settings = std::move(settings), .scratch_bytes = places.end()}};
}

}  // namespace muster::graph
