// Parameter client: its implementation: calls (parameter_client.cpp) and connections
// (parameter_client_links.cpp). Private to server.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "muster/server/link_memory.h"
#include "muster/server/outgoing_batch.h"
#include "muster/server/parameter_client.h"
#include "muster/server/rows_at_hand.h"
#include "muster/server/sorted_ids.h"
#include "muster/server/wire.h"
#include "muster/server/worker_machine.h"

namespace muster::server {

class ParameterClient::Implementation {
 public:
  explicit Implementation(Options options)
      : options_(std::move(options)),
        servers_(static_cast<std::uint32_t>(options_.servers.size())),
        holders_{.servers = servers_, .copies = options_.copies},
        machine_({.worker = options_.worker,
                  .server_num = servers_,
                  .copies = options_.copies,
                  .nothing = std::make_shared<OutgoingBatch>(BatchWriter(options_.worker, 0).take())}),
        links_(holders_.count()),
        at_hand_(servers_, options_.staleness) {}
  ~Implementation() { end_background(); }
  void end_background();

  Result<std::uint32_t> add_table(const TableSpec& spec, std::size_t cached_rows);
  Result<> begin(std::uint64_t generation, std::uint64_t step, std::optional<std::uint64_t> origin);
  std::uint64_t origin() const { return machine_.origin(); }
  Result<> pull(std::uint64_t step, std::span<const Lookup> lookups);
  Result<ListedRows> list_rows(std::uint64_t step, std::uint32_t table, bool with_states);
  Result<std::uint64_t> save_rows(std::uint64_t step, std::span<const std::uint32_t> tables,
                                  const std::string& order);
  Result<> pull_ahead(std::uint64_t step, std::uint32_t table, std::span<const std::uint64_t> ids);
  Result<> push(std::span<const Gradient> gradients);
  Result<> flush();
  void leave();
  void set_common_point(std::uint64_t step) {
    const Turn turn(*this);
    send(machine_.set_common_point(step));
  }
  void set_address(std::uint32_t server, const net::Address& address);
  std::uint64_t kept() {
    const Turn turn(*this);
    return machine_.kept();
  }
  std::uint64_t applied() const { return applied_; }
  Counts counts() const {
    Counts counts = at_hand_.counts();
    for (const Link& link : links_) counts.shared_batches += link.memory.batches();
    return counts;
  }

 private:
  static constexpr Duration reconnect_pause = std::chrono::milliseconds(20);

  // While a call is made no thread but its own has the loop and what belongs to it.
  class Turn {
   public:
    explicit Turn(Implementation& of) : of_(of) {
      ++of_.callers_;
      if (of_.background_.joinable()) of_.loop_.post([&loop = of_.loop_] { loop.stop(); });
      lock_ = std::unique_lock(of_.mutex_);
    }
    ~Turn() {
      --of_.callers_;
      lock_.unlock();
      of_.turned_.notify_one();
    }
    Turn(const Turn&) = delete;

   private:
    Implementation& of_;
    std::unique_lock<std::mutex> lock_;
  };

  struct Link {
    std::unique_ptr<net::Connection> connection = {};
    bool is_open = false;
    bool is_closed = true;  // to be made anew
    TimePoint next_attempt = {};
    std::string trouble = {};
    LinkMemory memory = {};
  };

  Result<> check_ids(std::uint32_t table, std::span<const std::uint64_t> ids) const;
  // Of the pull of rows of a table ahead of their step.
  static std::uint32_t number_of(std::uint32_t table) { return table + 1; }
  SortedIds sorted(std::uint32_t table, std::span<const std::uint64_t> ids) const {
    return SortedIds(ids, Owners(specs_[table], servers_), servers_);
  }
  Result<> check_pushes(std::span<const Gradient> gradients, std::span<const SortedIds> ids) const;
  Result<std::vector<Body>> bodies_of(std::uint64_t step, std::span<const SoughtRows> sought) const;
  Result<> take(std::uint64_t step, std::span<SoughtRows> sought, const std::vector<Rows>& rows);
  Result<> harvest();

  void serve_in_background();

  void connect_closed();
  void opened(std::uint32_t holder);
  void received(std::uint32_t holder, net::Frame frame);
  Result<ToWorker> decode(std::uint32_t holder, net::Frame frame);
  void send_batch(std::uint32_t holder, const net::FrameHeader& header, const OutgoingBatch& batch);
  void send(const ToServerMessages& messages);
  void send(std::uint32_t holder, const ToServer& message);
  void send_table(std::uint32_t holder, std::uint32_t table);
  void send_frame(std::uint32_t holder, FrameType type, const net::FrameHeader& header,
                  std::span<const std::byte> payload);
  // Serves connections until done(), the deadline or a failure; `what` is for the error.
  template <class Done>
  Result<> wait(const Done& done, std::string_view what) {
    return wait(done, what, options_.timeout);
  }
  template <class Done>
  Result<> wait(const Done& done, std::string_view what, Duration patience);
  template <class Done>
  Result<> serve_until(const Done& done, std::string_view what, Duration patience);
  std::string missing_servers() const;
  void tell_awaited(bool is_waiting);

  Options options_;
  std::uint32_t servers_;
  Holders holders_;
  WorkerMachine machine_;
  std::vector<TableSpec> specs_;
  net::Loop loop_;
  std::vector<Link> links_;  // by holder; destroyed before the loop
  std::optional<Error> corrupt_;
  std::uint64_t applied_ = 0;  // of the last pull
  RowsAtHand at_hand_;
  std::pair<std::uint32_t, std::uint32_t> told_ = {};  // the first server that is awaited, and how many are

  // Rows that were asked for ahead come while no call waits.
  std::mutex mutex_;
  std::atomic<int> callers_ = 0;
  std::condition_variable turned_;
  bool ends_ = false;
  std::thread background_;
};

}  // namespace muster::server
