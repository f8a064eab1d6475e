// Rows save: the rows of some tables on their way into a checkpoint, while the server goes on: the loop lists
// some rows between two events, a thread writes them. Private to server.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "muster/net/net.h"
#include "muster/server/saved_rows.h"
#include "muster/server/serial_thread.h"
#include "muster/server/table_set.h"
#include "muster/server/wire.h"

namespace muster::server {

class RowsSave {
 public:
  // What it is given is borrowed. `done` is called on the loop, once. Rows that change meanwhile (where
  // workers may be ahead) are saved as they are when their turn comes; rows that are made meanwhile are not.
  RowsSave(net::Loop& loop, const TableSet& tables, const RowFiles& files, Share share,
           const SaveOrder& order, std::function<void(const SaveOutcome&)> done);
  // Ends it; of a file that is not whole nothing is left.
  ~RowsSave();
  RowsSave(const RowsSave&) = delete;
  RowsSave& operator=(const RowsSave&) = delete;

 private:
  struct Part {
    std::uint32_t table = 0;
    std::uint64_t slots = 0;  // of which rows are saved
    std::uint64_t rows = 0;   // that are still to come at most
  };
  struct File;
  void go_on();
  void list_next();
  void post(std::function<Result<>()> job, bool is_last);
  void wrote(const Result<>& result, bool is_last);

  net::Loop& loop_;
  const TableSet& tables_;
  std::function<void(const SaveOutcome&)> done_;
  std::vector<Part> parts_;
  std::size_t part_ = 0;
  std::uint64_t slot_ = 0;
  std::size_t unwritten_ = 0;
  bool is_posted_ = false;
  bool has_ended_ = false;
  SaveOutcome outcome_;
  std::shared_ptr<File> file_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for what the thread posts
  SerialThread disk_;
};

}  // namespace muster::server
