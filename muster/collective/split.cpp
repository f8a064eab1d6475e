// Groups that are split off another: their ranks find each other through the group that all of them know.
#include <fmt/format.h>

#include <cstring>

#include "muster/collective/group_communicator.h"

namespace muster::collective {
namespace {

// What each rank tells all others. Only processes of one build read it.
struct Notice {
  std::uint32_t color;
  std::uint16_t port;
  char local_name[106];
};

Notice notice_of(std::uint32_t color, const Listener& listener) {
  Notice notice{.color = color, .port = listener.port(), .local_name = {}};
  MUSTER_CHECK(listener.local_name().size() < sizeof(notice.local_name),
               "the name of a local socket is long");
  listener.local_name().copy(notice.local_name, sizeof(notice.local_name));
  return notice;
}

}  // namespace

Result<Group> GroupCommunicator::split_group(std::uint32_t color, const Listener& listener) {
  std::vector<Notice> notices(size());
  const Notice own = notice_of(color, listener);
  MUSTER_TRY_VOID(run({.count = sizeof(Notice), .kind = CallKind::all_gather}, [&](const Call& numbered) {
    return all_gather(reinterpret_cast<const std::byte*>(&own), reinterpret_cast<std::byte*>(notices.data()),
                      sizeof(Notice), numbered);
  }));
  Group group{.epoch = group_->epoch,
              .job_id = group_->job_id,
              .rank = 0,
              .endpoints = {},
              .transport = group_->transport};
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (notices[rank].color != color) continue;
    if (rank == layout_.own_rank()) group.rank = static_cast<std::uint32_t>(group.endpoints.size());
    Endpoint& endpoint = group.endpoints.emplace_back(group_->endpoints[rank]);
    endpoint.port = notices[rank].port;
    endpoint.local_name.assign(notices[rank].local_name,
                               ::strnlen(notices[rank].local_name, sizeof(notices[rank].local_name)));
  }
  return group;
}

// Who cannot take part ends this group, since the others wait for it.
Result<std::unique_ptr<Communicator>> GroupCommunicator::split(std::uint32_t color) {
  MUSTER_TRY_VOID(usable());
  auto listener = Listener::open(origin_.listen_address);
  if (!listener) return fail_group(listener.error());
  MUSTER_TRY(Group group, split_group(color, *listener));
  auto made = connect(std::move(group), *std::move(listener),
                      {.connect_timeout = origin_.connect_timeout,
                       .call_timeout = origin_.call_timeout,
                       .stop = &stop_,
                       .security = origin_.security,
                       .roots_wait = origin_.roots_wait,
                       .reads_neighbours = origin_.reads_neighbours,
                       .clock = origin_.clock,
                       .recorder = origin_.recorder});
  if (!made)
    return fail_group(
        {made.error().code, fmt::format("the group of color {}: {}", color, made.error().message)});
  return *std::move(made);
}

}  // namespace muster::collective
