#include "muster/launch/hosts/agents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>

namespace muster::launch {
namespace {

constexpr Duration patience = std::chrono::seconds(30);
constexpr Duration loss_patience = std::chrono::seconds(1);
constexpr Duration end_patience = std::chrono::seconds(2);
constexpr Duration round = std::chrono::milliseconds(200);
constexpr std::size_t losses_shown_max = 8;

}  // namespace

bool is_this_host(const std::string& name) {
  std::array<char, 256> own{};
  if (name.empty() || name == "localhost") return true;
  return ::gethostname(own.data(), own.size() - 1) == 0 && name == own.data();
}

Result<Agents> Agents::connect(const std::vector<std::string>& hosts, const SshOptions& options,
                               int keeper_fd, const Clock& clock) {
  ::signal(SIGPIPE, SIG_IGN);  // ssh may end while it is spoken to
  Agents agents(clock);
  agents.keeper_fd_ = keeper_fd;
  const std::string folder = std::filesystem::current_path().string();
  for (const std::string& host : hosts) {
    MUSTER_TRY(auto crew, AgentCrew::start(host, folder, options, clock));
    agents.crews_.push_back(std::move(crew));
  }
  MUSTER_TRY_VOID(agents.wait_until([](const AgentCrew& crew) { return crew.hello().has_value(); },
                                    "ssh has not brought an agent there"));
  return agents;
}

Result<std::vector<std::vector<std::uint16_t>>> Agents::reserve(const PortsWanted& wanted,
                                                                const std::vector<bool>& is_asked) {
  for (std::size_t i = 0; i < crews_.size(); ++i)
    if (is_asked[i]) crews_[i]->reserve(static_cast<std::uint32_t>(wanted.count), wanted.min, wanted.max);
  MUSTER_TRY_VOID(wait_until([](const AgentCrew& crew) { return !crew.awaits_ports(); },
                             "its agent has not reserved ports"));
  std::vector<std::vector<std::uint16_t>> ports;
  for (const auto& crew : crews_) ports.push_back(crew->ports());
  return ports;
}

Result<> Agents::losses() const {
  std::vector<std::string> parts;
  std::size_t count = 0;
  for (const auto& crew : crews_)
    if (!crew->loss().empty() && ++count <= losses_shown_max)
      parts.push_back(fmt::format("host {}: {}", crew->host(), crew->loss()));
  if (count == 0) return {};
  if (count > losses_shown_max) parts.push_back(fmt::format("and {} more hosts", count - losses_shown_max));
  return fail(Code::peer_lost, fmt::format("{}", fmt::join(parts, "\n")));
}

Agents::~Agents() {
  std::erase(crews_, nullptr);
  for (const auto& crew : crews_) crew->begin_end();
  const TimePoint deadline = clock_->now() + end_patience;
  const auto is_there = [](const auto& crew) {
    return crew->loss().empty() && !crew->has_closed_its_output();
  };
  while (clock_->now() < deadline && std::any_of(crews_.begin(), crews_.end(), is_there))
    if (!poll_once()) return;
}

// Waits for a moment for what they say, and takes it. False: the keeper is gone, and there is no time.
bool Agents::poll_once() {
  std::vector<pollfd> polled;
  for (const auto& crew : crews_) crew->add_polled(polled, true);
  const std::size_t entries = polled.size() / crews_.size();
  polled.push_back({.fd = keeper_fd_, .events = POLLIN, .revents = 0});
  const auto round_ms = std::chrono::duration_cast<std::chrono::milliseconds>(round).count();
  ::poll(polled.data(), polled.size(), static_cast<int>(round_ms));
  if (polled.back().revents != 0) return false;
  for (std::size_t i = 0; i < crews_.size(); ++i) {
    crews_[i]->take(std::span(polled).subspan(i * entries, entries));
    if (crews_[i]->has_closed_its_output()) crews_[i]->reap();
  }
  return true;
}

// Until all of them are done. Once one is lost, the others have a moment: who mistyped two hosts is told of
// both.
template <class Done>
Result<> Agents::wait_until(const Done& is_done, std::string_view what) {
  const auto is_lost = [](const auto& crew) { return !crew->loss().empty(); };
  const auto is_awaited = [&](const auto& crew) { return !is_lost(crew) && !is_done(*crew); };
  TimePoint deadline = clock_->now() + patience;
  bool has_lost_one = false;
  for (;;) {
    const auto awaited = std::find_if(crews_.begin(), crews_.end(), is_awaited);
    if (awaited == crews_.end()) return losses();
    if (!has_lost_one && std::any_of(crews_.begin(), crews_.end(), is_lost)) {
      has_lost_one = true;
      deadline = std::min(deadline, clock_->now() + loss_patience);
    }
    if (clock_->now() >= deadline) {
      MUSTER_TRY_VOID(losses());
      return fail(Code::timeout, fmt::format("host {}: {} within 30 s; try: ssh {} true", (*awaited)->host(),
                                             what, (*awaited)->host()));
    }
    if (!poll_once()) return fail(Code::aborted, "the launcher was killed");
  }
}

}  // namespace muster::launch
