#include "muster/graph/passes/widen.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "muster/tensor/kernels.h"

namespace muster::graph {
namespace {

constexpr std::size_t not_copied = static_cast<std::size_t>(-1);

// One tensor of the call.
struct Part {
  std::int64_t elements = 0;
  DType dtype = DType::float32;
  std::size_t offset_bytes = not_copied;  // of its wide copy
  bool is_read = true;
  bool is_written = false;
};

struct Settings {
  std::string_view op;
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

bool is_narrow(DType dtype, bool floating) {
  return is_floating(dtype) == floating && computed_in(dtype) != dtype;
}

bool has_narrow(std::span<const TensorType> types, bool floating) {
  return std::any_of(types.begin(), types.end(),
                     [floating](const TensorType& type) { return is_narrow(type.dtype, floating); });
}

bool has_narrow(const Signature& signature, bool floating) {
  return has_narrow(signature.inputs, floating) || has_narrow(signature.outputs, floating);
}

std::vector<TensorType> widened(std::span<const TensorType> types, bool floating) {
  std::vector<TensorType> made(types.begin(), types.end());
  for (TensorType& type : made)
    if (is_narrow(type.dtype, floating)) type.dtype = computed_in(type.dtype);
  return made;
}

std::vector<Part> parts_of(std::span<const TensorType> types, bool floating, ScratchLayout& places) {
  std::vector<Part> parts;
  for (const TensorType& type : types) {
    Part& part = parts.emplace_back(Part{.elements = type.shape.elements(), .dtype = type.dtype});
    if (is_narrow(type.dtype, floating))
      part.offset_bytes =
          places.take(static_cast<std::size_t>(part.elements) * size_bytes(computed_in(type.dtype)));
  }
  return parts;
}

Settings settings_for(const Op& op, const Signature& signature, bool floating, Chosen chosen,
                      ScratchLayout& places) {
  Prepared& prepared = chosen.prepared;
  Settings made{.op = op.name, .run = chosen.kernel->run, .settings = std::move(prepared.settings)};
  places.take((signature.inputs.size() + signature.outputs.size()) * sizeof(std::byte*));
  made.scratch_offset_bytes = places.take(prepared.scratch_bytes);
  made.inputs = parts_of(signature.inputs, floating, places);
  made.outputs = parts_of(signature.outputs, floating, places);
  for (Part& output : made.outputs) {
    output.is_read = false;
    output.is_written = true;
  }
  for (const std::size_t index : op.written)
    if (index < made.inputs.size()) made.inputs[index].is_written = true;
  if (op.sharing == Sharing::in_place) made.outputs[0].offset_bytes = made.inputs[0].offset_bytes;
  return made;
}

// The first number of uint64 that int64 does not hold; null: there is none.
const std::uint64_t* beyond_int64(const std::byte* elements, std::int64_t count) {
  const auto* first = reinterpret_cast<const std::uint64_t*>(elements);
  const auto* found = std::find_if(first, first + count, [](std::uint64_t x) { return x >> 63 != 0; });
  return found == first + count ? nullptr : found;
}

// False: the call has failed.
bool widen(const KernelCall& call, const Settings& settings, const Part& part, const std::byte* from,
           std::byte* to) {
  if (part.dtype == DType::uint64)
    if (const std::uint64_t* number = beyond_int64(from, part.elements)) {
      *call.failure = Error{Code::not_provided,
                            fmt::format("{}: {} of uint64 is beyond int64, in which it computes: cast it to "
                                        "float64",
                                        settings.op, *number)};
      return false;
    }
  kernels::cast(from, part.dtype, to, computed_in(part.dtype), part.elements, call.threads);
  return true;
}

void run_widened(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  auto** const inputs = reinterpret_cast<std::byte**>(call.scratch);
  std::byte** const outputs = inputs + settings.inputs.size();
  for (std::size_t i = 0; i < settings.inputs.size(); ++i) {
    const Part& part = settings.inputs[i];
    inputs[i] = part.offset_bytes == not_copied ? call.inputs[i] : call.scratch + part.offset_bytes;
    if (part.offset_bytes != not_copied && !widen(call, settings, part, call.inputs[i], inputs[i])) return;
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
      kernels::cast(from, computed_in(part.dtype), to, part.dtype, part.elements, call.threads);
  };
  for (std::size_t i = 0; i < settings.inputs.size(); ++i)
    round(settings.inputs[i], inputs[i], call.inputs[i]);
  for (std::size_t i = 0; i < settings.outputs.size(); ++i)
    round(settings.outputs[i], outputs[i], call.outputs[i]);
}

}  // namespace

bool can_be_widened(const Signature& signature) {
  return has_narrow(signature, true) || has_narrow(signature, false);
}

Result<Chosen> choose_widened(const Op& op, const Signature& signature) {
  static const Kernel kernel{.name = "wider", .usable = nullptr, .prepare = nullptr, .run = run_widened};
  const bool floating = has_narrow(signature, true);
  const std::vector<TensorType> inputs = widened(signature.inputs, floating);
  const std::vector<TensorType> outputs = widened(signature.outputs, floating);
  MUSTER_TRY(Chosen chosen, choose_kernel(op, {.inputs = inputs,
                                               .outputs = outputs,
                                               .attributes = signature.attributes,
                                               .threads = signature.threads}));
  ScratchLayout places;
  auto settings =
      std::make_shared<const Settings>(settings_for(op, signature, floating, std::move(chosen), places));
  return Chosen{&kernel, {.settings = std::move(settings), .scratch_bytes = places.end()}};
}

}  // namespace muster::graph
