// Groups of some ranks of another one: they find each other by messages, and no other rank takes part.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "muster/collective/collective.h"

namespace muster::collective {
namespace {

// What each member tells the others. Only processes of one build read it.
struct Invitation {
  std::uint64_t members = 0;  // a checksum of all of them
  std::uint32_t count = 0;
  std::uint16_t port = 0;
  char local_name[106] = {};
  std::uint32_t first[16] = {};  // for an error's text
};

std::uint64_t checksum_of(std::span<const std::byte> bytes) { return net::payload_checksum(bytes); }

// Above the channels that people count.
std::uint64_t channel_of(const Members& members) {
  return checksum_of(std::as_bytes(std::span(members.name))) | std::uint64_t{1} << 63;
}

Invitation invitation_of(const Members& members, const Listener& listener) {
  Invitation made{.members = checksum_of(std::as_bytes(std::span(members.ranks))),
                  .count = static_cast<std::uint32_t>(members.ranks.size()),
                  .port = listener.port()};
  MUSTER_CHECK(listener.local_name().size() < sizeof(made.local_name), "the name of a local socket is long");
  listener.local_name().copy(made.local_name, sizeof(made.local_name));
  std::copy_n(members.ranks.begin(), std::min<std::size_t>(made.count, std::size(made.first)), made.first);
  return made;
}

std::string ranks_of(const Invitation& said) {
  const std::size_t shown = std::min<std::size_t>(said.count, std::size(said.first));
  return fmt::format("{}{}", fmt::join(said.first, said.first + shown, ", "),
                     shown < said.count ? fmt::format(", ... ({} ranks)", said.count) : "");
}

Result<> check_members(const Members& members, const Communicator& all) {
  std::vector<std::uint32_t> sorted = members.ranks;
  std::ranges::sort(sorted);
  const bool has_double = std::ranges::adjacent_find(sorted) != sorted.end();
  if (sorted.empty() || has_double || sorted.back() >= all.size())
    return fail(Code::invalid_argument,
                fmt::format("{}: different ranks below {} are needed", to_string(members), all.size()));
  if (!std::ranges::binary_search(sorted, all.rank()))
    return fail(Code::invalid_argument, fmt::format("rank {} is not in {}", all.rank(), to_string(members)));
  return {};
}

// What goes to each member and comes from it; kept until the last message is done, also after an error.
struct Invitations {
  Invitation own;
  std::vector<Invitation> of_members;
  std::vector<std::shared_ptr<Work>> received;  // by member; null for this one
  std::vector<std::shared_ptr<Work>> works;     // all that were sent and received

  bool has_come(std::size_t member) const {
    if (!received[member]) return true;
    const auto end = received[member]->wait(Duration::zero());
    return end && *end;
  }
};

std::shared_ptr<Invitations> invite(AsyncGroup& all, const Members& members, const Listener& listener) {
  const auto invitations = std::make_shared<Invitations>();
  invitations->own = invitation_of(members, listener);
  invitations->of_members.resize(members.ranks.size());
  invitations->received.resize(members.ranks.size());
  for (std::size_t i = 0; i < members.ranks.size(); ++i) {
    const std::uint32_t rank = members.ranks[i];
    if (rank == all.group().rank()) {
      invitations->of_members[i] = invitations->own;
      continue;
    }
    const std::uint64_t channel = channel_of(members);
    invitations->received[i] = all.receive(
        rank, std::as_writable_bytes(std::span(&invitations->of_members[i], 1)), /*tag=*/0, channel);
    invitations->works.push_back(invitations->received[i]);
    invitations->works.push_back(
        all.send(rank, std::as_bytes(std::span(&invitations->own, 1)), /*tag=*/0, channel));
  }
  for (const auto& work : invitations->works) work->on_done([invitations](const Result<>&) {});
  return invitations;
}

// Of those that have come.
Result<> check_agreement(const Invitations& invitations, const Members& members, std::uint32_t own_rank) {
  for (std::size_t i = 0; i < members.ranks.size(); ++i) {
    if (!invitations.has_come(i) || invitations.of_members[i].members == invitations.own.members) continue;
    return fail(Code::invalid_argument,
                fmt::format("group '{}' has the ranks {} on rank {}, and {} on rank {}", members.name,
                            ranks_of(invitations.own), own_rank, ranks_of(invitations.of_members[i]),
                            members.ranks[i]));
  }
  return {};
}

std::string missing(const Invitations& invitations, const Members& members) {
  std::vector<std::uint32_t> ranks;
  for (std::size_t i = 0; i < members.ranks.size(); ++i)
    if (!invitations.has_come(i)) ranks.push_back(members.ranks[i]);
  return fmt::format("{}", fmt::join(ranks, ", "));
}

// One that disagrees is heard of though others never come.
Result<> meet(const Invitations& invitations, const Members& members, std::uint32_t own_rank,
              const Options& options) {
  const TimePoint deadline = options.clock.now() + options.connect_timeout;
  for (;;) {
    MUSTER_TRY_VOID(check_agreement(invitations, members, own_rank));
    const auto waiting =
        std::ranges::find_if(invitations.works, [](const auto& work) { return !work->is_done(); });
    if (waiting == invitations.works.end()) break;
    const Duration left = deadline - options.clock.now();
    if (left <= Duration::zero())
      return fail(Code::timeout, fmt::format("{}: rank {} has not asked for it, too, within {} s",
                                             to_string(members), missing(invitations, members),
                                             std::chrono::duration<double>(options.connect_timeout).count()));
    (*waiting)->wait(std::min(left, wait_slice));
    look_while_waiting();
  }
  for (const auto& work : invitations.works) MUSTER_TRY_VOID(*work->wait());
  return {};
}

Group group_of(const Group& origin, const Invitations& invitations, const Members& members,
               std::uint32_t own_rank) {
  Group made{.epoch = origin.epoch,
             .job_id = origin.job_id,
             .rank = 0,
             .endpoints = {},
             .transport = origin.transport};
  for (std::size_t i = 0; i < members.ranks.size(); ++i) {
    const Invitation& said = invitations.of_members[i];
    if (members.ranks[i] == own_rank) made.rank = static_cast<std::uint32_t>(i);
    Endpoint& endpoint = made.endpoints.emplace_back(origin.endpoints[members.ranks[i]]);
    endpoint.port = said.port;
    endpoint.local_name.assign(said.local_name, ::strnlen(said.local_name, sizeof(said.local_name)));
  }
  return made;
}

}  // namespace

std::string to_string(const Members& members) {
  return fmt::format("group '{}' (ranks {})", members.name, fmt::join(members.ranks, ", "));
}

Result<std::unique_ptr<Communicator>> connect_some(AsyncGroup& all, const Group& origin,
                                                   const Members& members, Listener listener,
                                                   Options options) {
  MUSTER_TRY_VOID(check_members(members, all.group()));
  const std::uint32_t rank = all.group().rank();
  const auto invitations = invite(all, members, listener);
  MUSTER_TRY_VOID(meet(*invitations, members, rank, options));
  return connect(group_of(origin, *invitations, members, rank), std::move(listener), options);
}

}  // namespace muster::collective
