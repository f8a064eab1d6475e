// The first host's side of a rendezvous: who has come, who may not, when the job is over. A pure state
// machine: no sockets, no clock.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "muster/launch/hosts/rendezvous_messages.h"
#include "muster/launch/lease.h"

namespace muster::launch {

struct RendezvousTimes {
  Duration limit = std::chrono::seconds(1800);   // until all must have come
  Duration say_every = std::chrono::seconds(5);  // who is waited for
  Duration beat_every = std::chrono::seconds(1);
  Duration silence_told = std::chrono::seconds(5);  // then people are told
  Duration silence_max = std::chrono::seconds(10);  // then a host is lost
};

class RendezvousHub {
 public:
  using Peer = std::uint64_t;  // a connection

  struct Config {
    std::int64_t hosts = 1;  // this one included
    std::string preset = {};
    std::string place = {};  // "10.0.0.1:36665", for lines
    RendezvousTimes times = {};
  };
  struct Send {
    Peer to = 0;
    RendezvousMessage message = {};
    bool is_last = false;  // the connection is closed behind it
  };

  // `own` is what this host tells, its address included.
  RendezvousHub(Config config, HostReport own, TimePoint now);

  // What happens; `ip` is where the connection comes from.
  void received(Peer peer, const std::string& ip, const RendezvousMessage& message, TimePoint now);
  void closed(Peer peer, const std::string& why);
  void work_ended(int exit_code);  // of this host
  void tick(TimePoint now);
  // This host ends before all have come.
  void abort(const std::string& reason);

  // How it stands. All have come: never more than once. No host is waited for any more: an error.
  const std::optional<std::vector<HostReport>>& roster() const { return roster_; }
  const std::optional<Error>& failure() const { return failure_; }
  const std::optional<Lease::End>& end() const { return end_; }
  bool is_member(Peer peer) const { return members_.contains(peer); }
  void set_own_interface(const std::string& interface);
  // An address of this host that its connections to one of the others come from.
  void add_own_source(const std::string& ip);

  // What is to be sent and said since the last call.
  std::vector<Send> take_sends() { return std::exchange(sends_, {}); }
  std::vector<std::string> take_lines() { return std::exchange(lines_, {}); }

 private:
  struct Member {
    std::int64_t index = 0;
    TimePoint last_heard{};
    bool is_silence_told = false;
  };

  void admit(Peer peer, const std::string& ip, const rendezvous_message::Report& report, TimePoint now);
  std::optional<std::string> objection(const std::string& ip, const rendezvous_message::Report& report) const;
  void refuse(Peer peer, std::string reason, TimePoint now);
  void meet();
  void host_ended(std::int64_t index, const rendezvous_message::Ended& ended);
  void finish(Lease::End end);
  void heard(Member& member, TimePoint now);
  void watch_silence(TimePoint now);
  void say_who_is_absent(TimePoint now);
  std::string absent() const;
  std::string name_of(std::int64_t index) const;

  const Config config_;
  const TimePoint start_;
  TimePoint next_line_, next_beat_;
  std::map<std::int64_t, HostReport> present_;  // by index, this host included
  std::map<Peer, Member> members_;
  std::map<std::int64_t, bool> done_;  // whose work has ended well
  std::optional<std::vector<HostReport>> roster_;
  std::optional<Error> failure_;
  std::optional<Lease::End> end_;
  net::LineLimit refusals_;
  std::vector<Send> sends_;
  std::vector<std::string> lines_;
};

// What people are told of a host that is silent.
std::string silence_line(const std::string& host, const RendezvousTimes& times);
// "host 1 (10.0.0.8)".
std::string host_name(std::int64_t index, const std::string& address);

}  // namespace muster::launch
