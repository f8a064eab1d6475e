// What may carry tensors between hosts, for muster doctor.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "muster/collective/collective.h"
#include "muster/launch/doctor.h"

namespace muster::launch {
namespace {

using Pair = std::array<std::unique_ptr<Communicator>, 2>;

constexpr std::size_t link_message_bytes = 32 << 20;
constexpr int link_messages = 3;
constexpr int link_barriers = 200;
collective::Options link_limits() {
  return {.connect_timeout = std::chrono::seconds(5), .call_timeout = std::chrono::seconds(5)};
}

// Both ranks at once; the first error.
template <class Work>
Result<> on_both(const Work& work) {
  Result<> other;
  std::thread thread([&] { other = work(1); });
  const Result<> own = work(0);
  thread.join();
  return own ? other : own;
}

// Two ranks of this process that talk as if they were on two hosts.
Result<Pair> connect_pair(collective::Transport transport) {
  collective::Group group{
      .epoch = 1, .job_id = entropy(), .rank = 0, .endpoints = {}, .transport = transport};
  std::vector<collective::Listener> listeners;
  for (const char* host : {"one", "other"}) {
    MUSTER_TRY(collective::Listener listener, collective::Listener::open("127.0.0.1"));
    group.endpoints.push_back({.host_key = host,
                               .address = "127.0.0.1",
                               .port = listener.port(),
                               .local_name = listener.local_name()});
    listeners.push_back(std::move(listener));
  }
  Pair made;
  MUSTER_TRY_VOID(on_both([&](std::uint32_t rank) -> Result<> {
    collective::Group own = group;
    own.rank = rank;
    MUSTER_TRY(made[rank], collective::connect(std::move(own), std::move(listeners[rank]), link_limits()));
    return {};
  }));
  return made;
}

template <class Work>
Result<double> seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  MUSTER_TRY_VOID(on_both(work));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Result<std::string> measure_link(collective::Transport transport) {
  MUSTER_TRY(const Pair pair, connect_pair(transport));
  std::vector<std::byte> bytes(link_message_bytes), got(link_message_bytes);
  const auto pass = [&](std::uint32_t rank) -> Result<> {
    const std::span<const std::byte> sent(bytes);
    const std::span<std::byte> received(got);
    return rank == 0 ? pair[0]->send(1, {&sent, 1}) : pair[1]->receive(0, {&received, 1});
  };
  const auto meet = [&](std::uint32_t rank) -> Result<> {
    for (int i = 0; i < link_barriers; ++i) MUSTER_TRY_VOID(pair[rank]->barrier());
    return {};
  };
  MUSTER_TRY_VOID(on_both(pass));  // the first makes the connection
  double best_s = 1e9;
  for (int i = 0; i < link_messages; ++i) {
    MUSTER_TRY(const double took_s, seconds_of(pass));
    best_s = std::min(best_s, took_s);
  }
  MUSTER_TRY(const double barriers_s, seconds_of(meet));
  return fmt::format("{:.2f} GB/s, a barrier in {:.0f} us, from this host to itself",
                     static_cast<double>(link_message_bytes) / best_s / 1e9,
                     barriers_s / link_barriers * 1e6);
}

Finding examine_link(const char* subject, collective::Transport transport) {
  Finding finding{.subject = subject, .is_warning = true};
  if (auto measured = measure_link(transport))
    finding.value = *std::move(measured);
  else
    finding.problem = measured.error().message;
  return finding;
}

}  // namespace

std::vector<Finding> examine_links() {
  std::vector<Finding> findings;
  const auto ucx = collective::ucx_state();
  findings.push_back(
      {.subject = "UCX",
       .value = ucx ? fmt::format("{}: {}", ucx->name, fmt::join(ucx->devices, ", ")) : ucx.error().message});
  if (ucx)
    findings.push_back(
        {.subject = "RDMA",
         .value = ucx->has_rdma ? "found by UCX: MUSTER_TRANSPORT=ucx uses it" : "none found by UCX"});
  findings.push_back(examine_link("link over TCP", collective::Transport::tcp));
  if (ucx) findings.push_back(examine_link("link over UCX", collective::Transport::ucx));
  return findings;
}

}  // namespace muster::launch
