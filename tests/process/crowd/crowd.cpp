#include "crowd.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "muster/cluster/node.h"
#include "muster/cluster/wire.h"

namespace muster::crowd {
namespace {

using namespace muster::cluster;

constexpr net::ConnectionLimits limits{.payload_size_bytes = scheduler_payload_limit_bytes,
                                       .unsent_size_bytes = scheduler_payload_limit_bytes};

double in_seconds(Duration time) { return std::chrono::duration<double>(time).count(); }
Duration to_duration(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

class Crowd {
 public:
  explicit Crowd(const NodesOptions& options) : options_(options), nodes_(options.count) {}

  int run() {
    begin_ = real_clock().now();
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      starts_.push_back(begin_ + to_duration(options_.interval_s * static_cast<double>(i)));
    TimePoint leave_at = begin_ + to_duration(options_.seconds);
    bool told = false;
    for (;;) {
      loop_.run_for(std::chrono::milliseconds(2));
      start_those_due();
      tick();
      if (formed_ == nodes_.size() && !std::exchange(told, true)) {
        leave_at = real_clock().now() + to_duration(options_.seconds);
        fmt::print("formed {:.3f}\n", in_seconds(real_clock().now() - begin_));
        std::fflush(stdout);
      }
      if (failure_) return fail_all();
      if (real_clock().now() >= leave_at) break;
    }
    report();
    return told ? leave_all() : 0;
  }

 private:
  struct Node {
    std::unique_ptr<NodeMachine> machine;
    std::unique_ptr<net::Connection> connection;
    TimePoint started;
    std::optional<Duration> accepted;
    bool left = false;
    std::uint64_t steps = 0;
  };

  void start_those_due() {
    while (started_ < nodes_.size() && starts_[started_] <= real_clock().now()) start(started_++);
  }

  void start(std::size_t index) {
    Node& node = nodes_[index];
    node.started = real_clock().now();
    Member member{.role = Role::worker, .node_id = std::to_string(options_.first_id + index)};
    member.host_key = fmt::format("host-{}", index / 8);
    member.address = fmt::format("10.0.{}.{}", index / 256, index % 256);
    member.data_port = 1;
    member.incarnation = index + 1;
    member.is_named = true;
    const std::chrono::minutes patience(10);
    node.machine = std::make_unique<NodeMachine>(NodeConfig{.member = member,
                                                            .worker_num = options_.worker_num,
                                                            .topo_timeout = patience,
                                                            .retry_timeout = patience,
                                                            .node_timeout = patience,
                                                            .receive_timeout = patience,
                                                            .scheduler = net::to_string(options_.scheduler)},
                                                 node.started);
    due_.insert({node.started, index});
  }

  void tick() {
    const TimePoint now = real_clock().now();
    while (!due_.empty() && due_.begin()->first <= now) step(due_.begin()->second, node_event::Tick{});
  }

  void step(std::size_t index, const NodeEvent& event) {
    Node& node = nodes_[index];
    const TimePoint now = real_clock().now();
    due_.erase({deadlines_[index], index});
    due_.erase({node.started, index});
    // As a rank that trains says: its numbers go up.
    const NodeReport report{.step = ++node.steps,
                            .stats = ProcessStats{.counters = {.samples = node.steps, .cpu_us = node.steps},
                                                  .loss = 0.5,
                                                  .learning_rate = 0.01,
                                                  .memory_bytes = 1 << 28}};
    for (const NodeAction& action : node.machine->step(event, report, now))
      std::visit([&](const auto& a) { apply(index, a); }, action);
    if (node.machine->ended()) return;
    deadlines_[index] = std::max(node.machine->deadline(), now + std::chrono::milliseconds(1));
    due_.insert({deadlines_[index], index});
  }

  void apply(std::size_t index, const node_action::Connect&) {
    nodes_[index].connection = net::Connection::connect(
        loop_, options_.scheduler, limits,
        {.opened = [this, index] { step(index, node_event::Connected{}); },
         .received = [this, index](const net::Frame& frame) { receive(index, frame); },
         .closed =
             [this, index](const Error& error) {
               nodes_[index].connection.reset();
               step(index, node_event::Disconnected{error.message});
             }});
  }

  // Every node of a real job has a copy of the roster; here they share one.
  void receive(std::size_t index, const net::Frame& frame) {
    Node& node = nodes_[index];
    ++heard_;
    if (frame.payload.size() > 1024 && frame.header.payload_checksum == roster_checksum_)
      return step(index, node_event::Received{roster_});
    auto message = decode_message(frame);
    if (!message) {
      failure_ = message.error().message;
      return;
    }
    if (std::holds_alternative<message::Accept>(message->body) && !node.accepted)
      node.accepted = real_clock().now() - node.started;
    if (std::holds_alternative<message::RosterReady>(message->body)) {
      roster_checksum_ = frame.header.payload_checksum;
      roster_ = *message;
    }
    step(index, node_event::Received{*std::move(message)});
  }

  void apply(std::size_t index, const node_action::Disconnect&) {
    if (nodes_[index].connection) nodes_[index].connection->finish();
    nodes_[index].connection.reset();
  }
  void apply(std::size_t index, const node_action::Send& send) {
    if (nodes_[index].connection)
      nodes_[index].connection->send(
          std::make_shared<const std::vector<std::byte>>(encode_message(send.message)));
  }
  void apply(std::size_t, const node_action::Formed&) { ++formed_; }
  void apply(std::size_t, const node_action::JobEnded& ended) {
    if (ended.failure) failure_ = ended.failure->message;
  }
  void apply(std::size_t index, const node_action::Left&) { nodes_[index].left = true; }
  template <class Other>
  void apply(std::size_t, const Other&) {}

  void report() const {
    std::vector<double> times;
    for (const Node& node : nodes_)
      if (node.accepted) times.push_back(in_seconds(*node.accepted));
    std::sort(times.begin(), times.end());
    if (times.empty()) return;
    fmt::print("accepted {} of {}: median {:.3f} longest {:.3f}\n", times.size(), nodes_.size(),
               times[times.size() / 2], times.back());
    fmt::print("messages heard {}\n", heard_);
    std::fflush(stdout);
  }

  int leave_all() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) step(i, node_event::Leave{0, ""});
    const TimePoint until = real_clock().now() + std::chrono::seconds(10);
    while (real_clock().now() < until && !std::ranges::all_of(nodes_, [](const Node& n) { return n.left; })) {
      loop_.run_for(std::chrono::milliseconds(2));
      tick();
    }
    return std::ranges::all_of(nodes_, [](const Node& node) { return node.left; }) ? 0 : 1;
  }

  int fail_all() const {
    fmt::print("failure: {}\n", *failure_);
    return 1;
  }

  const NodesOptions options_;
  net::Loop loop_;
  std::vector<Node> nodes_;
  std::vector<TimePoint> starts_;
  std::vector<TimePoint> deadlines_ = std::vector<TimePoint>(nodes_.size());
  std::set<std::pair<TimePoint, std::size_t>> due_;
  TimePoint begin_;
  std::size_t started_ = 0;
  std::size_t formed_ = 0;
  std::uint64_t heard_ = 0;
  std::uint64_t roster_checksum_ = 0;
  Message roster_;
  std::optional<std::string> failure_;
};

}  // namespace

int run_nodes(const NodesOptions& options) { return Crowd(options).run(); }

}  // namespace muster::crowd
