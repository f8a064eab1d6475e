// IP addresses and host names, version 4 and 6 alike.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"

namespace muster::net {

// Where a socket is: a numeric IP address in its canonical text ("10.0.0.7", "::1", "fe80::1%eth0") and a
// port.
struct Address {
  std::string ip;
  std::uint16_t port = 0;
  friend bool operator==(const Address&, const Address&) = default;
};

// "10.0.0.7:8118", "[::1]:8118".
std::string to_string(const Address& address);

// The canonical text of a numeric address; "[::1]" is accepted for "::1". No look-up is made.
Result<std::string> parse_ip(std::string_view text);
bool is_ip_v6(std::string_view ip);
// 127.0.0.0/8 and ::1.
bool is_loopback(std::string_view ip);
// 0.0.0.0 and ::.
bool is_unspecified(std::string_view ip);

// "host:port" and "[v6]:port" as they are written on a command line; the host may be a name.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};
Result<HostPort> parse_host_port(std::string_view text);

// Numeric addresses are returned as they are; names are looked up, in the resolver's order, without
// duplicates. The look-up takes as long as the system's resolver takes (see resolv.conf). Errors name the
// host.
Result<std::vector<std::string>> resolve(const std::string& host);

// The addresses of this host's interfaces, loopback included.
Result<std::vector<std::string>> local_addresses();
// The name of the interface that has this address: "eth0".
Result<std::string> interface_of(const std::string& ip);
// Whether a socket of this host can be bound to `ip`; true for the whole of 127.0.0.0/8.
bool is_local(const std::string& ip);
// The local address that packets to `peer` leave from. Nothing is sent.
Result<std::string> source_address(const Address& peer);

// One look-up (see resolve) without waiting for the system's resolver, which cannot be stopped: on a thread
// of its own that it leaves behind when it is destroyed earlier.
class LookUp {
 public:
  explicit LookUp(const std::string& host);
  // Its result, once there is one; waits at most `time` for it.
  std::optional<Result<std::vector<std::string>>> wait_for(Duration time);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace muster::net
