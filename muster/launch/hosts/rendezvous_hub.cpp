#include "muster/launch/hosts/rendezvous_hub.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "muster/cluster/cluster.h"

namespace muster::launch {

namespace message = rendezvous_message;
using cluster::exit_code_peer_lost;
using cluster::in_seconds;

std::string host_name(std::int64_t index, const std::string& address) {
  return address.empty() ? fmt::format("host {}", index) : fmt::format("host {} ({})", index, address);
}

std::string silence_line(const std::string& host, const RendezvousTimes& times) {
  return fmt::format("{} has said nothing for {:.3g} s; after {:.3g} s it is lost", host,
                     in_seconds(times.silence_told), in_seconds(times.silence_max));
}

RendezvousHub::RendezvousHub(Config config, HostReport own, TimePoint now)
    : config_(std::move(config)),
      start_(now),
      next_line_(now + config_.times.say_every),
      next_beat_(now + config_.times.beat_every) {
  own.index = 0;
  present_.emplace(0, std::move(own));
  if (config_.hosts == 1) meet();
}

std::string RendezvousHub::name_of(std::int64_t index) const {
  const auto found = present_.find(index);
  return host_name(index, found == present_.end() ? "" : found->second.address);
}

void RendezvousHub::set_own_interface(const std::string& interface) { present_.at(0).interface = interface; }

void RendezvousHub::add_own_source(const std::string& ip) {
  auto& sources = present_.at(0).sources;
  if (sources.size() < rendezvous_sources_max && std::ranges::find(sources, ip) == sources.end())
    sources.push_back(ip);
}

// ---- Coming -----------------------------------------------------------------------------------------------

void RendezvousHub::received(Peer peer, const std::string& ip, const RendezvousMessage& message,
                             TimePoint now) {
  if (const auto* report = std::get_if<message::Report>(&message)) {
    if (!is_member(peer)) admit(peer, ip, *report, now);
    return;
  }
  const auto member = members_.find(peer);
  if (member == members_.end()) return refuse(peer, "it did not say which host it is", now);
  heard(member->second, now);
  if (const auto* ended = std::get_if<message::Ended>(&message)) host_ended(member->second.index, *ended);
}

void RendezvousHub::admit(Peer peer, const std::string& ip, const message::Report& report, TimePoint now) {
  if (auto reason = objection(ip, report)) return refuse(peer, *std::move(reason), now);
  HostReport host = report.host;
  host.address = ip;
  members_[peer] = {.index = host.index, .last_heard = now};
  present_[host.index] = std::move(host);
  if (static_cast<std::int64_t>(present_.size()) == config_.hosts) meet();
}

std::optional<std::string> RendezvousHub::objection(const std::string& ip,
                                                    const message::Report& report) const {
  if (report.version != rendezvous_version)
    return fmt::format(
        "the launcher on {} speaks version {} of the rendezvous and the first host version {}: install the "
        "same Muster on all hosts",
        ip, report.version, rendezvous_version);
  const HostReport& host = report.host;
  if (report.preset != config_.preset)
    return fmt::format(
        "{} starts --preset {} and the first host --preset {}: run the same line on every host, but for its "
        "rank",
        host_name(host.index, ip), report.preset, config_.preset);
  if (report.hosts != config_.hosts)
    return fmt::format(
        "{} was told that the job has {} hosts, and the first host that it has {}: say the "
        "same on every host",
        host_name(host.index, ip), report.hosts, config_.hosts);
  if (host.index <= 0 || host.index >= config_.hosts)
    return fmt::format("{} says that it is host {}: besides the first, {} hosts have the numbers 1 to {}", ip,
                       host.index, config_.hosts, config_.hosts - 1);
  if (roster_ || failure_ || end_) return fmt::format("the job has begun, or has ended, without {}", ip);
  if (const auto there = present_.find(host.index); there != present_.end())
    return fmt::format(
        "host {} is there already, at {}; {} says the same of itself: give every host a "
        "number of its own",
        host.index, there->second.address, ip);
  return std::nullopt;
}

void RendezvousHub::refuse(Peer peer, std::string reason, TimePoint now) {
  if (const auto note = refusals_.take(now)) lines_.push_back(fmt::format("refused: {}{}", reason, *note));
  sends_.push_back({peer, message::Refusal{std::move(reason)}, true});
}

void RendezvousHub::meet() {
  auto& roster = roster_.emplace();
  for (const auto& [index, host] : present_) roster.push_back(host);
  for (const auto& [peer, member] : members_) sends_.push_back({peer, message::Roster{roster}});
}

// ---- Going ------------------------------------------------------------------------------------------------

void RendezvousHub::closed(Peer peer, const std::string& why) {
  const auto found = members_.find(peer);
  if (found == members_.end()) return;
  const std::int64_t index = found->second.index;
  members_.erase(found);
  if (roster_)
    finish({exit_code_peer_lost, fmt::format("{} was lost: {}", name_of(index), why)});
  else
    present_.erase(index);  // it may come again
}

void RendezvousHub::host_ended(std::int64_t index, const message::Ended& ended) {
  if (ended.exit_code != 0)
    return finish({ended.exit_code, fmt::format("{} ended with code {}: its own output says why",
                                                name_of(index), ended.exit_code)});
  done_[index] = true;
  if (static_cast<std::int64_t>(done_.size()) == config_.hosts) finish({});
}

void RendezvousHub::work_ended(int exit_code) {
  if (roster_) host_ended(0, {.exit_code = exit_code});
}

void RendezvousHub::finish(Lease::End end) {
  if (end_) return;
  for (const auto& [peer, member] : members_)
    sends_.push_back({peer, message::Ended{end.exit_code, end.reason}, true});
  end_ = std::move(end);
}

void RendezvousHub::abort(const std::string& reason) {
  if (roster_ || failure_) return;
  for (const auto& [peer, member] : members_) sends_.push_back({peer, message::Refusal{reason}, true});
  failure_ = Error{Code::aborted, reason};
}

// ---- Waiting ----------------------------------------------------------------------------------------------

void RendezvousHub::tick(TimePoint now) {
  if (failure_ || end_) return;
  if (now >= next_beat_) {
    for (const auto& [peer, member] : members_) sends_.push_back({peer, message::Beat{}});
    next_beat_ = now + config_.times.beat_every;
  }
  watch_silence(now);
  if (!roster_) say_who_is_absent(now);
}

void RendezvousHub::heard(Member& member, TimePoint now) {
  member.last_heard = now;
  if (std::exchange(member.is_silence_told, false))
    lines_.push_back(fmt::format("{} speaks again", name_of(member.index)));
}

void RendezvousHub::watch_silence(TimePoint now) {
  std::vector<Peer> lost;
  for (auto& [peer, member] : members_) {
    const Duration silence = now - member.last_heard;
    if (silence > config_.times.silence_max) lost.push_back(peer);
    if (silence < config_.times.silence_told || member.is_silence_told) continue;
    member.is_silence_told = true;
    lines_.push_back(silence_line(name_of(member.index), config_.times));
  }
  for (const Peer peer : lost)
    closed(peer,
           fmt::format("nothing was heard from it for {:.3g} s", in_seconds(config_.times.silence_max)));
}

void RendezvousHub::say_who_is_absent(TimePoint now) {
  const double waited_s = in_seconds(now - start_);
  if (now - start_ >= config_.times.limit) {
    abort(
        fmt::format("the job's hosts are not complete after {:.3g} s (MS_TOPO_TIMEOUT): {} did not come to "
                    "{}. Is the same line running there, and does that port let it through?",
                    waited_s, absent(), config_.place));
    failure_->code = Code::timeout;
  } else if (now >= next_line_) {
    next_line_ = now + config_.times.say_every;
    lines_.push_back(fmt::format("waiting at {} since {:.3g} s for {}", config_.place, waited_s, absent()));
  }
}

// "host 2 of 4", "hosts 1, 3, 4 of 5", and not more than some.
std::string RendezvousHub::absent() const {
  constexpr std::size_t shown_max = 8;
  std::vector<std::string> indices;
  std::size_t count = 0;
  for (std::int64_t i = 0; i < config_.hosts; ++i) {
    if (present_.contains(i)) continue;
    if (++count <= shown_max) indices.push_back(std::to_string(i));
  }
  if (count > shown_max) indices.push_back(fmt::format("and {} more", count - shown_max));
  return fmt::format("{} {} of {}", count == 1 ? "host" : "hosts", fmt::join(indices, ", "), config_.hosts);
}

}  // namespace muster::launch
