// send_message and receive_message, each the gradient of the other one.
#include <cstring>
#include <utility>

#include "muster/graph/ops/array.h"
#include "muster/graph/ops/primitive.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace messages_rows {

// What comes back is marked, so that it is never taken for a message of the way there.
Attributes way_back(const Attributes& attributes) {
  Attributes made = attributes;
  made.set("is_gradient", !attributes.get("is_gradient", false));
  return made;
}

// What goes on with the tensor itself, and what the other side did with it.
std::vector<Value> gradient_of_send(const GradientQuery& query) {
  const Value& here = query.output_gradients[0];
  const Value there = apply("receive_message", {here}, way_back(query.attributes));
  return {apply("add", {here, there})};
}

// What was received depends on no element of the tensor that told its type.
std::vector<Value> gradient_of_receive(const GradientQuery& query) {
  apply("send_message", {query.output_gradients[0]}, way_back(query.attributes));
  return {Value()};
}

struct Settings {
  std::string group;
  std::int64_t tag = 0;
  std::uint32_t peer = 0;
  std::size_t size_bytes = 0;
  bool is_gradient = false;
};

Prepared prepare(const Signature& signature) {
  const Attributes& attributes = signature.attributes;
  return prepared(Settings{.group = attributes.get("group", std::string()),
                           .tag = attributes.get("tag", std::int64_t{0}),
                           .peer = static_cast<std::uint32_t>(attributes.get("peer", std::int64_t{0})),
                           .size_bytes = signature.inputs[0].size_bytes(),
                           .is_gradient = attributes.get("is_gradient", false)},
                  0);
}

// Gradients have the tags that users cannot give.
Result<Communicator*> messages_of(const KernelCall& call, const Settings& settings) {
  if (call.context->group == nullptr)
    return fail(Code::invalid_argument, "a message needs other workers: this process has none");
  return call.context->group(settings.group, settings.is_gradient ? -1 - settings.tag : settings.tag);
}

void run_send(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  if (call.outputs[0] != call.inputs[0]) std::memcpy(call.outputs[0], call.inputs[0], settings.size_bytes);
  const std::span<const std::byte> bytes(call.inputs[0], settings.size_bytes);
  const Result<> done = messages_of(call, settings).and_then([&](Communicator* group) {
    return group->send(settings.peer, {&bytes, 1});
  });
  if (!done) *call.failure = done.error();
}

void run_receive(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  const std::span<std::byte> bytes(call.outputs[0], settings.size_bytes);
  const Result<> done = messages_of(call, settings).and_then([&](Communicator* group) {
    return group->receive(settings.peer, {&bytes, 1});
  });
  if (!done) *call.failure = done.error();
}

Types same_type(const Signature& signature) { return same_as_first(signature); }

std::vector<Op> rows() {
  return {{.name = "send_message",
           .documentation = "The tensor itself, which rank `peer` of the `group` gets, too, by a "
                            "receive_message of the same `tag`.",
           .infer = same_type,
           .gradient = gradient_of_send,
           .kernels = {for_any_dtype({"reference", any, prepare, run_send})},
           .collective = true},
          {.name = "receive_message",
           .documentation = "What rank `peer` of the `group` has sent with this `tag`: a tensor of the shape "
                            "and dtype of the given one.",
           .infer = same_type,
           .gradient = gradient_of_receive,
           .kernels = {for_any_dtype({"reference", any, prepare, run_receive})},
           .collective = true}};
}

}  // namespace messages_rows
}  // namespace

std::vector<const Op*> rows_of_messages() {
  using namespace messages_rows;
  static const std::vector<Op> family = rows();
  return addresses(family);
}

}  // namespace muster::graph
