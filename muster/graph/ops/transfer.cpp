#include "muster/graph/ops/transfer.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "muster/graph/ops/ops.h"

namespace muster::graph {
namespace {
namespace transfer_rows {

struct Settings {
  std::uint32_t peer = 0;
  std::string what;
  std::vector<std::size_t> sizes_bytes;
};

template <class Byte>
using Pieces = std::span<const std::span<Byte>>;

Prepared prepare(std::span<const TensorType> types, const Attributes& attributes) {
  Settings settings{.peer = static_cast<std::uint32_t>(attributes.get("peer", std::int64_t{0})),
                    .what = attributes.get("what", std::string()),
                    .sizes_bytes = {}};
  for (const TensorType& type : types) settings.sizes_bytes.push_back(type.size_bytes());
  const std::size_t scratch = types.size() * sizeof(std::span<std::byte>);
  return prepared(std::move(settings), scratch);
}

// The tensors at `addresses`, listed in the scratch memory.
template <class Byte>
Pieces<Byte> pieces(const KernelCall& call, std::byte* const* addresses) {
  const auto& sizes = call.setting<Settings>().sizes_bytes;
  auto* const list = reinterpret_cast<std::span<Byte>*>(call.scratch);
  for (std::size_t i = 0; i < sizes.size(); ++i) list[i] = {addresses[i], sizes[i]};
  return {list, sizes.size()};
}

void finish(const KernelCall& call, Result<> done, std::string_view direction) {
  if (done) return;
  const auto& settings = call.setting<Settings>();
  *call.failure =
      Error{done.error().code,
            fmt::format("while {} {} {} worker {}: {}", direction == "to" ? "sending" : "waiting for",
                        settings.what, direction, settings.peer, done.error().message)};
}

void run_send(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  finish(call, call.context->stages->send(settings.peer, pieces<const std::byte>(call, call.inputs)), "to");
}

void run_receive(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  finish(call, call.context->stages->receive(settings.peer, pieces<std::byte>(call, call.outputs)), "from");
}

Types infer(const Signature&) { return bad("what is sent and received follows from the placement"); }

}  // namespace transfer_rows
}  // namespace

Attributes transfer_attributes(std::uint32_t peer, std::string what) {
  return {{"peer", static_cast<std::int64_t>(peer)}, {"what", std::move(what)}};
}

const Op& send_op() {
  using namespace transfer_rows;
  static const Op op{
      .name = "send",
      .documentation = "Sends its inputs to worker `peer`.",
      .inputs_max = 65536,
      .infer = infer,
      .kernels = {for_any_dtype(
          {"stages", any_signature,
           [](const Signature& signature) { return prepare(signature.inputs, signature.attributes); },
           run_send})},
      .collective = true,
      .mixes = true,
  };
  return op;
}

const Op& receive_op() {
  using namespace transfer_rows;
  static const Op op{
      .name = "receive",
      .documentation = "Receives its outputs from worker `peer`.",
      .inputs_min = 0,
      .inputs_max = 0,
      .infer = infer,
      .kernels = {for_any_dtype(
          {"stages", any_signature,
           [](const Signature& signature) { return prepare(signature.outputs, signature.attributes); },
           run_receive})},
      .collective = true,
      .mixes = true,
  };
  return op;
}

}  // namespace muster::graph
