// Servers: parameter servers on threads of their own, for tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "muster/server/parameter_server.h"

namespace muster::server {

class RunningServer {
 public:
  explicit RunningServer(ParameterServer::Options options) {
    auto opened = ParameterServer::open(*loop_, std::move(options));
    if (!opened) {
      ADD_FAILURE() << opened.error().message;
      return;
    }
    server_ = *std::move(opened);
    address_ = server_->address();
    thread_ = std::thread([loop = loop_.get()] { loop->run(); });
  }
  RunningServer(RunningServer&&) = default;
  ~RunningServer() {
    if (!thread_.joinable()) return;
    loop_->stop();
    thread_.join();
    server_.reset();
  }

  const net::Address& address() const { return address_; }
  std::function<ParameterServer::State()> watch() const { return server_->watch(); }

 private:
  std::unique_ptr<net::Loop> loop_ = std::make_unique<net::Loop>();
  std::unique_ptr<ParameterServer> server_;
  net::Address address_;
  std::thread thread_;
};

}  // namespace muster::server
