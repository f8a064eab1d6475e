#include <fmt/format.h>

#include "muster/collective/collective.h"
#include "muster/collective/state.h"

namespace muster::collective {
namespace {

// Sizes on the wire and in pointer arithmetic stay far from overflow.
constexpr std::size_t size_limit_bytes = std::size_t{1} << 40;

Result<> check_group(const Group& group) {
  if (group.endpoints.empty() || group.endpoints.size() > ranks_max)
    return fail(Code::invalid_argument,
                fmt::format("a group of {} ranks; 1 to {} are possible", group.endpoints.size(), ranks_max));
  if (group.rank >= group.endpoints.size())
    return fail(Code::invalid_argument,
                fmt::format("rank {} in a group of {} ranks", group.rank, group.endpoints.size()));
  return {};
}

Layout layout_of(const Group& group) {
  std::vector<std::string_view> host_keys;
  host_keys.reserve(group.endpoints.size());
  for (const Endpoint& endpoint : group.endpoints) host_keys.push_back(endpoint.host_key);
  return Layout(host_keys, group.rank);
}

LocalShape shape_of(const Layout& layout) {
  const Sizes sizes = sizes_of(layout);
  return {.ranks = layout.own_ranks(),
          .local_rank = layout.place_of(layout.own_rank()),
          .small_size_bytes = sizes.small_size_bytes,
          .chunk_size_bytes = sizes.chunk_size_bytes,
          .remote_ranks = layout.remote_count(),
          .raw_size_bytes = sizes.raw_size_bytes};
}

// Else it would be found out in the middle of the rendezvous, by some.
Result<> check_descriptors(const Layout& layout) {
  constexpr std::size_t for_the_process = 16;
  const std::size_t free = net::free_descriptors();
  if (layout.lanes().size() + for_the_process <= free) return {};
  return fail(
      Code::invalid_argument,
      fmt::format("rank {} needs connections to {} other hosts, but this process may open only {} more "
                  "files: raise that limit (ulimit -n)",
                  layout.own_rank(), layout.lanes().size(), free));
}

Result<> check_size(std::size_t count, std::size_t item_size_bytes) {
  if (count > size_limit_bytes / item_size_bytes)
    return fail(Code::invalid_argument,
                fmt::format("{} elements are more than the limit of {} bytes", count, size_limit_bytes));
  return {};
}

template <class Pieces>
Result<> check_message(const Pieces& pieces, const Communicator& own, std::uint32_t peer,
                       std::string_view what) {
  constexpr std::size_t piece_limit = 1 << 16;
  if (peer >= own.size() || peer == own.rank())
    return fail(Code::invalid_argument,
                fmt::format("rank {} of {} cannot {} rank {}", own.rank(), own.size(), what, peer));
  if (pieces.size() > piece_limit)
    return fail(Code::invalid_argument,
                fmt::format("a message of {} pieces; at most {} are possible", pieces.size(), piece_limit));
  std::size_t size_bytes = 0;
  for (const auto& piece : pieces) {
    MUSTER_TRY_VOID(check_size(piece.size(), 1));
    MUSTER_TRY_VOID(check_size(size_bytes += piece.size(), 1));
  }
  return {};
}

}  // namespace

Result<Listener> Listener::open(const std::string& address) {
  MUSTER_TRY(auto tcp, net::TcpListener::open({.ip = address, .port = 0}));
  MUSTER_TRY(auto local, net::LocalListener::open());
  return Listener(std::move(tcp), std::move(local));
}

Result<std::unique_ptr<Communicator>> Communicator::connect(Group group, Listener listener, Options options) {
  MUSTER_TRY_VOID(check_group(group));
  Layout layout = layout_of(group);
  MUSTER_TRY_VOID(check_descriptors(layout));
  State::Origin origin{.listen_address = listener.address(),
                       .connect_timeout = options.connect_timeout,
                       .call_timeout = options.call_timeout,
                       .security = options.security};
  MUSTER_TRY(Connections connections, Rendezvous(group, layout, listener, shape_of(layout), options).meet());
  MUSTER_TRY(net::StopSignal stop, net::StopSignal::create());
  const auto kept = std::make_shared<const Group>(std::move(group));
  std::unique_ptr<ReconnectAcceptor> acceptor;
  if (!layout.has_one_host()) {
    std::vector<std::uint32_t> linked;
    for (const Lane& lane : layout.lanes()) linked.push_back(lane.peer);
    MUSTER_TRY(acceptor,
               ReconnectAcceptor::open(kept, std::move(linked), std::move(listener), options.security));
  }
  return std::unique_ptr<Communicator>(
      new Communicator(std::make_unique<State>(kept, std::move(layout), std::move(connections),
                                               std::move(acceptor), std::move(stop), std::move(origin))));
}

Communicator::Communicator(std::unique_ptr<State> state) : state_(std::move(state)) {}
Communicator::~Communicator() = default;

Result<> Communicator::all_reduce(const void* in, void* out, std::size_t count, DType dtype,
                                  Reduction reduction) {
  if (!can_combine(dtype))
    return fail(
        Code::invalid_argument,
        fmt::format("all_reduce of {}; it takes float32, float64, int32 and int64", to_string(dtype)));
  MUSTER_TRY_VOID(check_size(count, size_bytes(dtype)));
  const Call call{.count = count, .kind = Kind::all_reduce, .dtype = dtype, .reduction = reduction};
  const Offsets offsets = state_->offsets_of(in, out, count * size_bytes(dtype));
  return state_->run(call, offsets, [&](const Call& numbered) {
    return state_->all_reduce(static_cast<const std::byte*>(in), static_cast<std::byte*>(out), numbered);
  });
}

Result<> Communicator::broadcast(void* data, std::size_t size_bytes, std::uint32_t root) {
  MUSTER_TRY_VOID(check_size(size_bytes, 1));
  if (root >= size())
    return fail(Code::invalid_argument, fmt::format("broadcast from rank {} in a group of {}", root, size()));
  const Call call{.count = size_bytes, .root = root, .kind = Kind::broadcast};
  return state_->run(
      call, [&](const Call& numbered) { return state_->broadcast(static_cast<std::byte*>(data), numbered); });
}

Result<> Communicator::all_gather(const void* in, void* out, std::size_t size_bytes) {
  MUSTER_TRY_VOID(check_size(size_bytes, size()));
  const Call call{.count = size_bytes, .kind = Kind::all_gather};
  return state_->run(call, [&](const Call& numbered) {
    return state_->all_gather(static_cast<const std::byte*>(in), static_cast<std::byte*>(out), numbered);
  });
}

Result<> Communicator::barrier() {
  return state_->run({.kind = Kind::barrier},
                     [&](const Call& numbered) { return state_->barrier(numbered); });
}

Result<std::unique_ptr<Communicator>> Communicator::split(std::uint32_t color) {
  return state_->split(color);
}

Result<> Communicator::send(std::uint32_t to, std::span<const std::span<const std::byte>> pieces) {
  MUSTER_TRY_VOID(check_message(pieces, *this, to, "send to"));
  return state_->send(to, pieces);
}

Result<> Communicator::receive(std::uint32_t from, std::span<const std::span<std::byte>> pieces) {
  MUSTER_TRY_VOID(check_message(pieces, *this, from, "receive from"));
  return state_->receive(from, pieces);
}

Result<std::shared_ptr<std::byte>> Communicator::shared_buffer(std::size_t size_bytes) {
  MUSTER_TRY_VOID(check_size(size_bytes, 1));
  return state_->shared_buffer(size_bytes);
}

void Communicator::abort(Error reason) { state_->abort(std::move(reason)); }

void Communicator::leave(Error reason) { state_->leave(std::move(reason)); }

InFlightCall Communicator::in_flight_call() const { return state_->in_flight_call(); }

std::uint32_t Communicator::rank() const { return state_->rank(); }
std::uint32_t Communicator::size() const { return state_->size(); }
std::uint32_t Communicator::local_rank() const { return state_->local_rank(); }
std::uint32_t Communicator::local_size() const { return state_->local_size(); }

}  // namespace muster::collective
