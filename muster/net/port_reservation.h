// A free TCP port that stays free until the process that was promised it listens there.
#pragma once

#include <cstdint>
#include <string>

#include "muster/base/base.h"
#include "muster/net/descriptor.h"

namespace muster::net {

// While it lives, the system gives the port to no process that asks for "any free port". A program that names
// the port and sets SO_REUSEADDR, as servers do, can listen on it.
class PortReservation {
 public:
  // This port of a numeric address, or, if it is 0, a free one.
  static Result<PortReservation> open(const std::string& ip, std::uint16_t port = 0);
  std::uint16_t port() const { return port_; }

 private:
  PortReservation(Descriptor socket, std::uint16_t port) : socket_(std::move(socket)), port_(port) {}
  Descriptor socket_;
  std::uint16_t port_;
};

}  // namespace muster::net
