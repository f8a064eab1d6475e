#include "muster/train/group_ops.h"

#include <fmt/format.h>

#include "muster/graph/graph.h"
#include "muster/train/job.h"

namespace muster::train {
namespace {

using graph::Attributes;
using nn::Value;

Attributes in_group(const std::string& group) {
  const auto size =
      static_cast<std::int64_t>(group.empty() ? world_size() : group_ranks(group).value().size());
  Attributes made{{"ranks", size}};
  if (!group.empty()) made.set("group", group);
  return made;
}

Attributes reducing(Reduction reduction, const std::string& group) {
  Attributes made = in_group(group);
  made.set("reduction", std::string(to_string(reduction)));
  return made;
}

std::int64_t one_of(const Attributes& group, const char* op, const char* what, std::int64_t rank) {
  const std::int64_t size = group.get("ranks", std::int64_t{1});
  if (rank >= 0 && rank < size) return rank;
  throw Exception(Code::invalid_argument,
                  fmt::format("{}: {} is a rank from 0 to {}, not {}", op, what, size - 1, rank));
}

Value message(const char* op, const char* what, const Value& x, std::int64_t peer, std::int64_t tag,
              const std::string& group) {
  if (tag < 0)
    throw Exception(Code::invalid_argument, fmt::format("{}: a tag is 0 or more, not {}", op, tag));
  Attributes attributes{{"peer", one_of(in_group(group), op, what, peer)}, {"tag", tag}};
  if (!group.empty()) attributes.set("group", group);
  return graph::apply(op, {x}, attributes);
}

}  // namespace

Value all_reduce(const Value& x, Reduction reduction, const std::string& group) {
  // Without a group its attributes are those of the reductions that training makes.
  const Attributes all{{"reduction", std::string(to_string(reduction))}};
  return graph::apply("all_reduce", {x}, group.empty() ? all : reducing(reduction, group));
}

Value all_gather(const Value& x, const std::string& group) {
  return graph::apply("all_gather", {x}, in_group(group));
}

Value reduce_scatter(const Value& x, Reduction reduction, const std::string& group) {
  return graph::apply("reduce_scatter", {x}, reducing(reduction, group));
}

Value all_to_all(const Value& x, const std::string& group) {
  return graph::apply("all_to_all", {x}, in_group(group));
}

Value broadcast(const Value& x, std::int64_t root, const std::string& group) {
  Attributes attributes = in_group(group);
  attributes.set("root", one_of(attributes, "broadcast", "root", root));
  return graph::apply("broadcast", {x}, attributes);
}

Value reduce(const Value& x, Reduction reduction, std::int64_t root, const std::string& group) {
  Attributes attributes = reducing(reduction, group);
  attributes.set("root", one_of(attributes, "reduce", "root", root));
  return graph::apply("reduce", {x}, attributes);
}

Value send(const Value& x, std::int64_t to, std::int64_t tag, const std::string& group) {
  return message("send_message", "to", x, to, tag, group);
}

Value receive(const Value& like, std::int64_t from, std::int64_t tag, const std::string& group) {
  return message("receive_message", "from_", like, from, tag, group);
}

}  // namespace muster::train
