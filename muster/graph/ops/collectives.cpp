// all_gather, reduce_scatter, all_to_all, broadcast and reduce, each the gradient of another one. A `group`
// of some ranks is one of its name; `ranks` and `root` count in it.
#include <cstring>
#include <numeric>

#include "muster/graph/ops/array.h"
#include "muster/graph/ops/call_group.h"
#include "muster/graph/ops/primitive.h"
#include "muster/graph/ops/rules.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace collectives_rows {

// How many ranks the group has; the call compares it with the group's own number.
std::int64_t ranks_of(const Attributes& attributes) { return attributes.get("ranks", std::int64_t{1}); }

TensorType with_first(TensorType type, std::int64_t size) {
  type.shape[0] = size;
  return type;
}

Result<> require_blocks(std::string_view op, const Shape& shape, const Attributes& attributes) {
  const std::int64_t ranks = ranks_of(attributes);
  if (shape.rank() > 0 && ranks > 0 && shape[0] % ranks == 0) return {};
  return bad("{}: the first axis of {} is cut into a block for each of {} ranks", op, to_string(shape),
             ranks);
}

std::string reduction_name(const Attributes& attributes) {
  return attributes.get<std::string>("reduction", "sum");
}

Result<> require_reduction(std::string_view op, const Signature& signature) {
  const std::string name = reduction_name(signature.attributes);
  const auto reduction = reduction_from_string(name);
  const DType dtype = signature.inputs[0].dtype;
  if (!reduction) return bad("{}: no reduction is called '{}'", op, name);
  if (!can_reduce(dtype, *reduction))
    return bad("{}: there is no {} of {}", op, name, muster::to_string(dtype));
  return {};
}

Types infer_all_gather(const Signature& signature) {
  std::vector<TensorType> made;
  for (const TensorType& x : signature.inputs) {
    if (x.shape.rank() == 0)
      return bad("all_gather: a tensor without axes cannot be joined: reshape it to (1,)");
    made.push_back(with_first(x, x.shape[0] * ranks_of(signature.attributes)));
  }
  return made;
}

Types infer_reduce_scatter(const Signature& signature) {
  MUSTER_TRY_VOID(require_reduction("reduce_scatter", signature));
  MUSTER_TRY_VOID(require_equal_dtypes("reduce_scatter", signature));
  std::vector<TensorType> made;
  for (const TensorType& x : signature.inputs) {
    MUSTER_TRY_VOID(require_blocks("reduce_scatter", x.shape, signature.attributes));
    made.push_back(with_first(x, x.shape[0] / ranks_of(signature.attributes)));
  }
  return made;
}

Types infer_all_to_all(const Signature& signature) {
  MUSTER_TRY_VOID(require_blocks("all_to_all", signature.inputs[0].shape, signature.attributes));
  return same_as_first(signature);
}

Types infer_reduce(const Signature& signature) {
  MUSTER_TRY_VOID(require_reduction("reduce", signature));
  return same_as_first(signature);
}

// ---- Gradients --------------------------------------------------------------------------------------------

// dx of what reduces, by the call that is its gradient for a sum.
Value gradient_by(std::string_view back, std::string_view op, const GradientQuery& query) {
  const std::string reduction = reduction_name(query.attributes);
  if (reduction != "sum" && reduction != "mean")
    throw Exception(Code::not_provided,
                    fmt::format("the gradient cannot pass through {} with '{}'", op, reduction));
  const Value dx = apply(back, {query.output_gradients[0]}, query.attributes);
  return reduction == "sum" ? dx : times(dx, 1.0 / static_cast<double>(ranks_of(query.attributes)));
}

// Of one tensor: a call of several is what a plan makes of several calls.
std::vector<Value> gradient_of_all_gather(const GradientQuery& query) {
  return {apply("reduce_scatter", {query.output_gradients[0]}, query.attributes)};
}

std::vector<Value> gradient_of_reduce_scatter(const GradientQuery& query) {
  return {gradient_by("all_gather", "reduce_scatter", query)};
}

std::vector<Value> gradient_of_all_to_all(const GradientQuery& query) {
  return {apply("all_to_all", {query.output_gradients[0]}, query.attributes)};
}

std::vector<Value> gradient_of_broadcast(const GradientQuery& query) {
  return {apply("reduce", {query.output_gradients[0]}, query.attributes)};
}

std::vector<Value> gradient_of_reduce(const GradientQuery& query) {
  return {gradient_by("broadcast", "reduce", query)};
}

// ---- Kernels ----------------------------------------------------------------------------------------------

struct Settings {
  CallGroup group;
  std::size_t in_bytes = 0, out_bytes = 0, elements = 0;  // elements of the output
  std::vector<std::size_t> pieces_bytes = {};             // of several: what this rank has of each
  DType dtype = DType::float32;
  Reduction reduction = Reduction::sum;
  std::uint32_t ranks = 1, root = 0;
};

Prepared prepare(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  const TensorType& y = signature.outputs[0];
  return prepared(
      Settings{.group = call_group(signature.attributes),
               .in_bytes = x.size_bytes(),
               .out_bytes = y.size_bytes(),
               .elements = static_cast<std::size_t>(y.shape.elements()),
               .dtype = x.dtype,
               .reduction = *reduction_from_string(reduction_name(signature.attributes)),
               .ranks = static_cast<std::uint32_t>(ranks_of(signature.attributes)),
               .root = static_cast<std::uint32_t>(signature.attributes.get("root", std::int64_t{0}))},
      0);
}

using GroupCall = Result<> (*)(Communicator&, const KernelCall&, const Settings&);

Result<> call_in(Communicator* group, GroupCall make, const KernelCall& call, const Settings& settings) {
  const std::uint32_t size = group == nullptr ? 1 : group->size();
  if (size != settings.ranks)
    return fail(Code::invalid_argument,
                fmt::format("a collective call for {} ranks in a group of {}", settings.ranks, size));
  if (size > 1) return make(*group, call, settings);
  const std::vector<std::size_t> sizes =
      settings.pieces_bytes.empty() ? std::vector{settings.in_bytes} : settings.pieces_bytes;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (call.outputs[i] != call.inputs[i]) std::memcpy(call.outputs[i], call.inputs[i], sizes[i]);
  return {};
}

// The call of a group; alone each of them gives what it was given.
template <GroupCall make>
void run(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  const Result<> done = find_group(settings.group, call).and_then([&](Communicator* group) {
    return call_in(group, make, call, settings);
  });
  if (!done) *call.failure = done.error();
}

std::size_t sum_of(const std::vector<std::size_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

// Of several tensors, side by side: this rank's pieces, and behind them those of all ranks.
Prepared prepare_pieces(const Signature& signature, const std::vector<TensorType>& pieces) {
  Prepared made = prepare(signature);
  if (pieces.size() == 1) return made;
  Settings settings = *static_cast<const Settings*>(made.settings.get());
  for (const TensorType& piece : pieces) settings.pieces_bytes.push_back(piece.size_bytes());
  const std::size_t bytes = sum_of(settings.pieces_bytes);
  return prepared(std::move(settings),
                  bytes * (1 + static_cast<std::size_t>(ranks_of(signature.attributes))));
}

Prepared prepare_gather(const Signature& signature) {
  return prepare_pieces(signature, {signature.inputs.begin(), signature.inputs.end()});
}

Prepared prepare_scatter(const Signature& signature) {
  return prepare_pieces(signature, {signature.outputs.begin(), signature.outputs.end()});
}

// Calls visit(what `rank` has of tensor i, where that lies in the tensor, its bytes) in the order in which
// they lie side by side.
template <class Visit>
void for_each_piece(std::span<const std::size_t> sizes, std::uint32_t ranks, std::byte* joined,
                    const Visit& visit) {
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    for (std::size_t i = 0; i < sizes.size(); joined += sizes[i++])
      visit(i, rank * sizes[i], joined, sizes[i]);
}

Result<> gather_several(Communicator& group, const KernelCall& call, const Settings& settings) {
  const std::size_t bytes = sum_of(settings.pieces_bytes);
  std::byte* const own = call.scratch;
  std::byte* const joined = own + bytes;
  for_each_piece(settings.pieces_bytes, 1, own,
                 [&](std::size_t i, std::size_t, std::byte* at, std::size_t size) {
                   std::memcpy(at, call.inputs[i], size);
                 });
  MUSTER_TRY_VOID(group.all_gather(own, joined, bytes));
  for_each_piece(settings.pieces_bytes, settings.ranks, joined,
                 [&](std::size_t i, std::size_t place, const std::byte* at, std::size_t size) {
                   std::memcpy(call.outputs[i] + place, at, size);
                 });
  return {};
}

Result<> scatter_several(Communicator& group, const KernelCall& call, const Settings& settings) {
  const std::size_t bytes = sum_of(settings.pieces_bytes);
  std::byte* const own = call.scratch;
  std::byte* const joined = own + bytes;
  for_each_piece(settings.pieces_bytes, settings.ranks, joined,
                 [&](std::size_t i, std::size_t place, std::byte* at, std::size_t size) {
                   std::memcpy(at, call.inputs[i] + place, size);
                 });
  MUSTER_TRY_VOID(group.reduce_scatter(joined, own, bytes / size_bytes(settings.dtype), settings.dtype,
                                       settings.reduction));
  for_each_piece(settings.pieces_bytes, 1, own,
                 [&](std::size_t i, std::size_t, const std::byte* at, std::size_t size) {
                   std::memcpy(call.outputs[i], at, size);
                 });
  return {};
}

Result<> gather_all(Communicator& group, const KernelCall& call, const Settings& settings) {
  if (!settings.pieces_bytes.empty()) return gather_several(group, call, settings);
  return group.all_gather(call.inputs[0], call.outputs[0], settings.in_bytes);
}

Result<> scatter_reduced(Communicator& group, const KernelCall& call, const Settings& settings) {
  if (!settings.pieces_bytes.empty()) return scatter_several(group, call, settings);
  return group.reduce_scatter(call.inputs[0], call.outputs[0], settings.elements, settings.dtype,
                              settings.reduction);
}

Result<> exchange(Communicator& group, const KernelCall& call, const Settings& settings) {
  const std::size_t block = settings.in_bytes / settings.ranks;
  std::vector<std::span<const std::byte>> sent;
  std::vector<std::span<std::byte>> places;
  for (std::size_t rank = 0; rank < settings.ranks; ++rank) {
    sent.emplace_back(call.inputs[0] + rank * block, block);
    places.emplace_back(call.outputs[0] + rank * block, block);
  }
  return group.all_to_all(sent, places);
}

Result<> tell_all(Communicator& group, const KernelCall& call, const Settings& settings) {
  if (call.outputs[0] != call.inputs[0]) std::memcpy(call.outputs[0], call.inputs[0], settings.in_bytes);
  return group.broadcast(call.outputs[0], settings.in_bytes, settings.root);
}

Result<> reduce_to_root(Communicator& group, const KernelCall& call, const Settings& settings) {
  MUSTER_TRY_VOID(group.reduce(call.inputs[0], call.outputs[0], settings.elements, settings.dtype,
                               settings.reduction, settings.root));
  if (group.rank() != settings.root) std::memset(call.outputs[0], 0, settings.out_bytes);
  return {};
}

template <GroupCall make>
Kernel kernel(Prepared (*prepares)(const Signature&) = prepare) {
  return for_any_dtype({"reference", any, prepares, run<make>});
}

std::vector<Op> rows() {
  return {
      {.name = "all_gather",
       .documentation =
           "The tensors of all `ranks` ranks joined along the first axis, in the order of the ranks. Every "
           "rank calls it with a tensor of the same type; or with several, which travel together, each "
           "joined for itself.",
       .inputs_max = 65536,
       .outputs = 0,
       .infer = infer_all_gather,
       .gradient = gradient_of_all_gather,
       .kernels = {kernel<gather_all>(prepare_gather)},
       .collective = true},
      {.name = "reduce_scatter",
       .documentation = "The tensors of all `ranks` ranks joined element by element, and of that this rank's "
                        "block: the first axis is cut into as many. `reduction` is one of all_reduce's. "
                        "Several tensors travel together, each cut for itself.",
       .inputs_max = 65536,
       .outputs = 0,
       .infer = infer_reduce_scatter,
       .gradient = gradient_of_reduce_scatter,
       .kernels = {kernel<scatter_reduced>(prepare_scatter)},
       .collective = true},
      {.name = "all_to_all",
       .documentation = "The first axis is cut into a block for each of `ranks` ranks; block i goes to rank "
                        "i, and what comes is joined in the order of the ranks.",
       .infer = infer_all_to_all,
       .gradient = gradient_of_all_to_all,
       .kernels = {kernel<exchange>()},
       .collective = true},
      {.name = "broadcast",
       .documentation = "The tensor of rank `root` for all `ranks` ranks.",
       .infer = [](const Signature& signature) { return same_as_first(signature); },
       .gradient = gradient_of_broadcast,
       .kernels = {kernel<tell_all>()},
       .collective = true},
      {.name = "reduce",
       .documentation =
           "The tensors of all `ranks` ranks joined element by element on rank `root`, zeros on the others. "
           "`reduction` is one of all_reduce's.",
       .infer = infer_reduce,
       .gradient = gradient_of_reduce,
       .kernels = {kernel<reduce_to_root>()},
       .collective = true}};
}

}  // namespace collectives_rows
}  // namespace

std::vector<const Op*> rows_of_collectives() {
  using namespace collectives_rows;
  static const std::vector<Op> family = rows();
  return addresses(family);
}

}  // namespace muster::graph
