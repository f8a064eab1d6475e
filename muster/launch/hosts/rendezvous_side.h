// Base of both sides of a rendezvous, the first host's and the others'. Private to hosts/rendezvous*.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "muster/launch/hosts/rendezvous.h"

namespace muster::launch {

class RendezvousOutcome {
 public:
  static Result<std::unique_ptr<RendezvousOutcome>> create();

  // The rendezvous' thread; only the first call of each counts.
  void met(Result<std::vector<HostReport>> roster);
  void over(Lease::End end);

  // The supervisor's thread.
  Result<std::vector<HostReport>> wait(std::span<const int> abort_fds);
  int fd() const { return over_.fd(); }
  bool has_met() const { return met_.raised(); }
  std::optional<Lease::End> end() const;

 private:
  RendezvousOutcome(net::StopSignal met, net::StopSignal over)
      : met_(std::move(met)), over_(std::move(over)) {}

  mutable std::mutex mutex_;
  std::optional<Result<std::vector<HostReport>>> roster_ = {};
  std::optional<Lease::End> end_ = {};
  net::StopSignal met_, over_;  // raised once the above is there
};

// Runs on the rendezvous' thread, but for its construction, `stop` and `work_ended`.
class RendezvousSide {
 public:
  RendezvousSide(const RendezvousOptions& options, RendezvousOutcome& outcome)
      : options_(options), outcome_(outcome) {}
  virtual ~RendezvousSide() = default;

  void run();
  // Any thread.
  void stop();
  void work_ended(int exit_code);

 protected:
  virtual void tick() = 0;
  virtual void own_work_ended(int exit_code) = 0;
  // Tells the others that this host goes; then whether a host has not yet heard it.
  virtual void say_goodbye() = 0;
  virtual bool is_heard() const = 0;

  void say(const std::string& line) const {
    if (options_.say) options_.say(line);
  }
  // The addresses of the place where the hosts meet, once they are known. An error may be gone the next time.
  std::optional<Result<std::vector<std::string>>> place_ips();
  std::string place() const;
  // Each host says so: people look at the output of one of them.
  void warn_of_open_network() const;

  const RendezvousOptions& options_;
  RendezvousOutcome& outcome_;
  net::Loop loop_;

 private:
  void tick_again();

  std::optional<net::LookUp> look_up_ = {};
  TimePoint next_look_up_{};
  bool stopping_ = false;
};

std::unique_ptr<RendezvousSide> make_first_host(const RendezvousOptions& options, RendezvousOutcome& outcome);
std::unique_ptr<RendezvousSide> make_other_host(const RendezvousOptions& options, RendezvousOutcome& outcome);

// The interface that packets to `peer` leave by; empty when it has no name.
std::string interface_towards(const net::Address& peer);

}  // namespace muster::launch
