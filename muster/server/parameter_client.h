// Parameter client: a worker's way to the parameter servers of its job.
//
// Calls block, with a deadline, and one thread makes them. A server that dies and comes back is waited for
// inside of the call, and gets what it lacks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/net/net.h"
#include "muster/server/table_spec.h"

namespace muster::server {

class ParameterClient {
 public:
  struct Options {
    std::uint32_t worker = 0;
    std::vector<net::Address> servers = {};  // by number
    std::uint32_t copies = 1;                // as the servers have it: how many of them have each row
    std::uint64_t job_id = 0;
    // As the servers have it: how many steps a cached row may lack. Nothing: cached rows serve their step
    // alone.
    std::optional<std::uint64_t> staleness = 0;
    Duration timeout = std::chrono::seconds(60);  // of each call
    const Clock& clock = real_clock();            // borrowed; of all deadlines
    // How the connection to a server is protected; null: plain.
    std::function<net::ConnectionSecurity(std::uint32_t server)> security = {};
    // Batches for servers of this host that have at least so many bytes lie in shared memory; none: never.
    std::optional<std::size_t> shared_from_bytes = std::size_t{64} << 10;
    // Asked about every 100 ms while a call waits; an error ends it.
    std::function<Result<>()> interrupted = {};
    // Told whenever it changes on how many servers a call waits, and which is the first of them.
    std::function<void(std::uint32_t first, std::uint32_t count)> awaits = {};
  };
  explicit ParameterClient(Options options);
  ~ParameterClient();
  ParameterClient(const ParameterClient&) = delete;
  ParameterClient& operator=(const ParameterClient&) = delete;

  // All workers tell of the same tables in the same order; the number by which it is called from here on. Of
  // the rows that are pulled the worker keeps so many, and uses them for as long as they may be seen.
  Result<std::uint32_t> add_table(const TableSpec& spec, std::size_t cached_rows = 0);
  // All workers begin a generation (of the job's epoch) at this step. `origin`, for those who know it, is the
  // step at which the job began: above 0 where the optimizer's state was loaded. Returns once every server
  // has answered.
  Result<> begin(std::uint64_t generation, std::uint64_t step, std::optional<std::uint64_t> origin = {});
  // The step at which the job began, behind `begin`.
  std::uint64_t origin() const;

  struct Lookup {
    std::uint32_t table = 0;
    std::span<const std::uint64_t> ids = {};
    std::span<float> rows = {};  // ids.size() * width
  };
  // The rows as the step shall see them. Code::invalid_argument for ids that a table does not have.
  Result<> pull(std::uint64_t step, std::span<const Lookup> lookups);

  // All rows of a table that are kept (of one without vocabulary those that any step has updated), as the
  // step shall see them (with a staleness above 0, of those that come while steps are applied some as they
  // were before): ids, ascending, and for each `width` values, or with states whole_width numbers.
  struct ListedRows {
    std::vector<std::uint64_t> ids = {};
    std::vector<float> values = {};
  };
  Result<ListedRows> list_rows(std::uint64_t step, std::uint32_t table, bool with_states = false);

  // Every server writes the rows of these tables down as the step shall see them, in files that
  // RowFiles::create makes of `order`, and goes on serving meanwhile. Returns how many rows they are, once
  // all of them are on the disk; the error of a server's disk names the server.
  Result<std::uint64_t> save_rows(std::uint64_t step, std::span<const std::uint32_t> tables,
                                  const std::string& order);

  // Asks for rows that this step, a later one, will look up, and returns at once: what servers have of them
  // comes while the worker computes, and with the step what has changed since. For each table the last one
  // counts.
  Result<> pull_ahead(std::uint64_t step, std::uint32_t table, std::span<const std::uint64_t> ids);
  // Of rows that lookups have asked for, each once: those that came from the cache, or ahead of their step.
  struct Counts {
    std::uint64_t looked_up = 0;
    std::uint64_t from_cache = 0;
    std::uint64_t from_ahead = 0;
    std::uint64_t shared_batches =
        0;  // that lay in memory shared with servers of this host, to and from them
  };
  Counts counts() const;
  // The process ends next: no thread receives rows ahead of their step any more.
  void end_background();
  // It ends well, and pushes nothing more: servers tell those workers who wait for its gradients.
  void leave();

  struct Gradient {
    std::uint32_t table = 0;
    float learning_rate = 0;
    // That the optimizer has done before this one; none: as many as the job.
    std::optional<std::uint64_t> steps = {};
    std::span<const std::uint64_t> ids = {};
    std::span<const float> values = {};  // ids.size() * width; those of equal ids are added
    // The values are no gradients but what rows begin with that the servers do not keep yet, distinct ones.
    bool has_first_values = false;
    bool has_states = false;  // first values come with those of the optimizer's states: whole_width numbers
  };
  // The gradients of the step that was pulled last; returns without waiting for the servers.
  // Code::invalid_argument for numbers that are none.
  Result<> push(std::span<const Gradient> gradients);
  // Steps before this one were in the rows of the last pull, of all servers; 0 where each push counts for
  // itself.
  std::uint64_t applied() const;
  // Waits until every server has all pushes on its disk.
  Result<> flush();

  // All workers have a recovery point of this step or a later one: no worker will begin a generation before
  // it, and servers need not be able to go back behind it. Call it when the job's common point has moved:
  // until then the servers' logs grow.
  void set_common_point(std::uint64_t step);

  // Where a server is that was started again elsewhere.
  void set_address(std::uint32_t server, const net::Address& address);
  // Steps before this one are on every server's disk.
  std::uint64_t kept() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace muster::server
