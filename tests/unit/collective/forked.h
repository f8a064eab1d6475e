// Groups whose ranks are processes: rank 0 is the test's own, the others are forked.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "ranks.h"

namespace muster::collective {

// Make it before this process has a thread.
class Forked {
 public:
  struct Child {
    Communicator& comm;
    const Forked& group;
    // Returns when the test says go() once more.
    void wait_for_go() const {
      char byte = 0;
      if (::read(group.down_[0], &byte, 1) != 1) std::_Exit(3);
    }
  };
  // What a child returns is its exit status.
  using Work = std::function<int(const Child&)>;

  Forked(std::uint32_t ranks, Hosts hosts, Options options, const Work& work)
      : ranks_(ranks), hosts_(hosts), options_(options) {
    EXPECT_EQ(::pipe(up_.data()) | ::pipe(down_.data()), 0);
    for (std::uint32_t rank = 1; rank < ranks; ++rank) {
      const pid_t child = ::fork();
      if (child == 0) std::_Exit(run_child(rank, work));
      children_[rank] = child;
    }
    comm_ = join(0, [this](const Notice& own) { return gather(own); });
  }
  ~Forked() {
    for (const auto& [rank, child] : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
    for (const int fd : {up_[0], up_[1], down_[0], down_[1]}) ::close(fd);
  }
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;

  Communicator& comm() { return *comm_; }
  pid_t child(std::uint32_t rank) const { return children_.at(rank); }
  void go() { EXPECT_EQ(::write(down_[1], "g", 1), 1); }
  // As waitpid tells it.
  int wait_for(std::uint32_t rank) {
    int status = 0;
    EXPECT_EQ(::waitpid(child(rank), &status, 0), child(rank));
    children_.erase(rank);
    return status;
  }

 private:
  struct Notice {  // endpoints travel to the parent and, complete, back
    std::uint32_t rank;
    std::uint16_t port;
    char name[64];
  };
  using Notices = std::vector<Notice>;

  std::unique_ptr<Communicator> join(std::uint32_t rank,
                                     const std::function<Notices(const Notice&)>& exchange) {
    Listener listener = Listener::open("127.0.0.1").value();
    Notice mine{.rank = rank, .port = listener.port(), .name = {}};
    listener.local_name().copy(mine.name, sizeof(mine.name) - 1);
    Group group{.epoch = 1, .job_id = 7, .rank = rank, .endpoints = {}, .transport = transport_of(hosts_)};
    for (const Notice& each : exchange(mine))
      group.endpoints.push_back({.host_key = host_of(hosts_, each.rank),
                                 .address = "127.0.0.1",
                                 .port = each.port,
                                 .local_name = each.name});
    auto connected = connect(group, std::move(listener), options_);
    if (!connected && rank > 0) std::_Exit(3);  // an exception would let the child go on with the next test
    return std::move(connected).value();
  }

  int run_child(std::uint32_t rank, const Work& work) {
    comm_ = join(rank, [this](const Notice& mine) {
      Notices all(ranks_);
      const auto bytes = static_cast<ssize_t>(all.size() * sizeof(Notice));
      const bool told = ::write(up_[1], &mine, sizeof(mine)) == sizeof(mine) &&
                        ::read(down_[0], all.data(), static_cast<std::size_t>(bytes)) == bytes;
      if (!told) std::_Exit(3);
      return all;
    });
    return work({*comm_, *this});
  }

  Notices gather(const Notice& own) {
    Notices all(ranks_);
    all[0] = own;
    for (std::uint32_t other = 1; other < ranks_; ++other) {
      Notice notice;
      EXPECT_EQ(::read(up_[0], &notice, sizeof(notice)), static_cast<ssize_t>(sizeof(notice)));
      all[notice.rank] = notice;
    }
    const std::size_t bytes = all.size() * sizeof(Notice);
    for (std::uint32_t other = 1; other < ranks_; ++other)
      EXPECT_EQ(::write(down_[1], all.data(), bytes), static_cast<ssize_t>(bytes));
    return all;
  }

  std::uint32_t ranks_;
  Hosts hosts_;
  Options options_;
  std::array<int, 2> up_{}, down_{};
  std::map<std::uint32_t, pid_t> children_;
  std::unique_ptr<Communicator> comm_;
};

}  // namespace muster::collective
