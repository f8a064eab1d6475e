// A job of probes on this host.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "child.h"
#include "muster/net/net.h"

namespace muster::process_test {

// Twice the two seconds that the issue allows: this machine may be busy.
constexpr auto soon = 4s;

// A job on a free port of this host.
class Job {
 public:
  explicit Job(std::uint32_t worker_num, const std::string& host = "127.0.0.1")
      : reservation_(*net::PortReservation::open(host == "::1" ? "::1" : "127.0.0.1")) {
    common_ = {{"MS_SCHED_HOST", host},
               {"MS_SCHED_PORT", std::to_string(reservation_.port())},
               {"MS_WORKER_NUM", std::to_string(worker_num)},
               {"MS_TOPO_TIMEOUT", "20"}};
  }

  void set(const std::string& name, const std::string& value) { common_[name] = value; }
  Child scheduler(Variables more = {}) { return start("MS_SCHED", std::move(more)); }
  Child worker(const std::string& id, Variables more = {}) {
    more["MS_NODE_ID"] = id;
    return start("MS_WORKER", std::move(more));
  }
  Child start(const std::string& role, Variables more) {
    Variables all = common_;
    all["MS_ROLE"] = role;
    for (const auto& [name, value] : more) all[name] = value;
    return Child(CLUSTER_PROBE, all);
  }
  std::uint16_t port() const { return reservation_.port(); }

 private:
  net::PortReservation reservation_;
  Variables common_;
};

}  // namespace muster::process_test
