// Rows fetch: a server that has nothing of a share gets the files of the other server that holds it
// (docs/formats/parameter-server.md). Private to server.
//
// On the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/net/net.h"
#include "muster/server/kept_files.h"

namespace muster::server {

class RowsFetch {
 public:
  struct Options {
    std::string path = {};  // of the base and the log, without their ends
    std::uint32_t share = 0;
    std::uint64_t job_id = 0;
    // The other one answers once it has heard of this generation: before, workers may still drop pushes that
    // this server had and lacks now.
    std::uint64_t generation = 0;
  };
  // Called once: whether the other one had anything. Files that are not whole are not there then.
  using Done = std::function<void(Result<bool>)>;
  // The loop is borrowed.
  RowsFetch(net::Loop& loop, Options options, Done done);
  ~RowsFetch();
  RowsFetch(const RowsFetch&) = delete;
  RowsFetch& operator=(const RowsFetch&) = delete;

  // Where there is no connection, or it broke: all is asked for anew.
  void connect(const net::Address& address, const net::ConnectionSecurity& security);
  bool is_connected() const { return is_connected_; }

 private:
  void opened();
  Result<> received(const net::Frame& frame);
  Result<> begin(const net::Frame& frame);
  Result<> write(const net::Frame& frame);
  void ask();
  void end(Result<bool> result);

  struct File {
    KeptFileName name;
    net::ProcessDescriptor descriptor;
    std::string path;
  };

  net::Loop& loop_;
  Options options_;
  Done done_;
  std::unique_ptr<net::Connection> connection_;
  bool is_connected_ = false;
  std::vector<File> files_;
  std::uint32_t asked_file_ = 0;  // and from which byte on: what is asked for next
  std::uint64_t asked_offset_ = 0;
  std::uint32_t awaited_ = 0;  // parts
};

}  // namespace muster::server
