#include "muster/net/address.h"
#include "muster/net/socket_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <memory>

namespace muster::net {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// getaddrinfo also reads scopes ("fe80::1%eth0"), which inet_pton does not.
Result<AddressList> look_up(const std::string& host, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int status = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (status != 0) {
    const char* reason = status == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(status);
    return fail(Code::not_found, fmt::format("cannot resolve host '{}': {}", host, reason));
  }
  return AddressList(found, &::freeaddrinfo);
}

SocketAddress copy_of(const sockaddr* address, socklen_t size_bytes) {
  SocketAddress copy;
  copy.size_bytes = std::min<socklen_t>(size_bytes, sizeof(copy.storage));
  std::memcpy(&copy.storage, address, copy.size_bytes);
  return copy;
}

std::string_view without_brackets(std::string_view text) {
  const bool bracketed = text.size() > 2 && text.front() == '[' && text.back() == ']';
  return bracketed ? text.substr(1, text.size() - 2) : text;
}

// A socket descriptor that lives for one question to the kernel.
class Probe {
 public:
  explicit Probe(int family) : fd_(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  ~Probe() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

std::string to_string(const Address& address) {
  return is_ip_v6(address.ip) ? fmt::format("[{}]:{}", address.ip, address.port)
                              : fmt::format("{}:{}", address.ip, address.port);
}

Result<std::string> parse_ip(std::string_view text) {
  const std::string bare(without_brackets(text));
  // getaddrinfo takes "1" and "0x7f.1" for IPv4 addresses; that is never what is meant.
  in_addr v4{};
  const bool is_v4 = ::inet_pton(AF_INET, bare.c_str(), &v4) == 1;
  if (!is_v4 && bare.find(':') == std::string::npos)
    return fail(Code::invalid_argument, fmt::format("'{}' is not an IP address", text));
  auto found = look_up(bare, AI_NUMERICHOST);
  if (!found) return fail(Code::invalid_argument, fmt::format("'{}' is not an IP address", text));
  MUSTER_TRY(const Address address, from_socket_address(copy_of((*found)->ai_addr, (*found)->ai_addrlen)));
  return address.ip;
}

bool is_ip_v6(std::string_view ip) { return ip.find(':') != std::string_view::npos; }
bool is_loopback(std::string_view ip) { return ip == "::1" || ip.starts_with("127."); }
bool is_unspecified(std::string_view ip) { return ip == "::" || ip == "0.0.0.0"; }

Result<HostPort> parse_host_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0)
    return fail(Code::invalid_argument, fmt::format("'{}' is not host:port", text));
  const std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.find(':') != std::string_view::npos && host.front() != '[')
    return fail(Code::invalid_argument, fmt::format("'{}': write an IPv6 address as [address]:port", text));
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc{} || end != digits.data() + digits.size())
    return fail(Code::invalid_argument,
                fmt::format("'{}': the port is not a whole number up to 65535", text));
  return HostPort{std::string(without_brackets(host)), port};
}

Result<std::vector<std::string>> resolve(const std::string& host) {
  if (auto numeric = parse_ip(host)) return std::vector<std::string>{*std::move(numeric)};
  if (host.empty()) return fail(Code::invalid_argument, "cannot resolve an empty host name");
  MUSTER_TRY(const AddressList found, look_up(host, 0));
  std::vector<std::string> ips;
  for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
    if (each->ai_family != AF_INET && each->ai_family != AF_INET6) continue;
    MUSTER_TRY(Address address, from_socket_address(copy_of(each->ai_addr, each->ai_addrlen)));
    if (std::find(ips.begin(), ips.end(), address.ip) == ips.end()) ips.push_back(std::move(address.ip));
  }
  if (ips.empty()) return fail(Code::not_found, fmt::format("host '{}' has no IP address", host));
  return ips;
}

namespace {

// Calls `see` with each interface's name and address, until it returns false.
Result<> for_each_address(const std::function<bool(const char*, const std::string&)>& see) {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return fail_errno("cannot list this host's addresses", errno);
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, &::freeifaddrs);
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    MUSTER_TRY(const Address address, from_socket_address(copy_of(each->ifa_addr, size)));
    if (!see(each->ifa_name, address.ip)) break;
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> local_addresses() {
  std::vector<std::string> ips;
  MUSTER_TRY_VOID(for_each_address([&](const char*, const std::string& ip) {
    ips.push_back(ip);
    return true;
  }));
  return ips;
}

Result<std::string> interface_of(const std::string& ip) {
  std::string found;
  MUSTER_TRY_VOID(for_each_address([&](const char* name, const std::string& each) {
    if (each == ip) found = name;
    return found.empty();
  }));
  if (found.empty()) return fail(Code::not_found, fmt::format("no interface of this host has {}", ip));
  return found;
}

bool is_local(const std::string& ip) {
  const auto address = to_socket_address({.ip = ip, .port = 0});
  if (!address || is_unspecified(ip)) return false;
  const Probe probe(address->family());
  return probe.fd() >= 0 && ::bind(probe.fd(), address->get(), address->size_bytes) == 0;
}

Result<std::string> source_address(const Address& peer) {
  MUSTER_TRY(const SocketAddress target,
             to_socket_address({peer.ip, peer.port == 0 ? std::uint16_t{9} : peer.port}));
  const Probe probe(target.family());
  SocketAddress source;
  source.size_bytes = sizeof(source.storage);
  if (probe.fd() < 0 || ::connect(probe.fd(), target.get(), target.size_bytes) != 0 ||
      ::getsockname(probe.fd(), source.get(), &source.size_bytes) != 0)
    return fail_errno(fmt::format("no route to {}", peer.ip), errno);
  MUSTER_TRY(Address address, from_socket_address(source));
  return std::move(address.ip);
}

Error connect_error(const Address& peer, int error_number) {
  const std::string where = to_string(peer);
  switch (error_number) {
    case ECONNREFUSED:
      return {Code::not_found, fmt::format("connection refused: nothing listens at {}", where)};
    case ETIMEDOUT:
      return {Code::timeout, fmt::format("timed out: {} does not answer", where)};
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
    case EADDRNOTAVAIL:
    case EACCES:  // a firewall, or a route that forbids it
    case EPERM:
    case EINVAL:  // a route into a black hole
      return {Code::io, fmt::format("unreachable: {}: {} (errno {})", where, std::strerror(error_number),
                                    error_number)};
    default:
      return {Code::peer_lost,
              fmt::format("{}: {} (errno {})", where, std::strerror(error_number), error_number)};
  }
}

Result<SocketAddress> to_socket_address(const Address& address) {
  auto found = look_up(address.ip, AI_NUMERICHOST);
  if (!found) return fail(Code::invalid_argument, fmt::format("'{}' is not an IP address", address.ip));
  SocketAddress made = copy_of((*found)->ai_addr, (*found)->ai_addrlen);
  if (made.family() == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(&made.storage)->sin6_port = htons(address.port);
  else
    reinterpret_cast<sockaddr_in*>(&made.storage)->sin_port = htons(address.port);
  return made;
}

Result<Address> from_socket_address(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.family() == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address.storage);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    return Address{text, ntohs(v4.sin_port)};
  }
  if (address.family() != AF_INET6)
    return fail(Code::invalid_argument,
                fmt::format("address family {} is neither IPv4 nor IPv6", address.family()));
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    ::inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof(text));
    return Address{text, ntohs(v6.sin6_port)};
  }
  ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  std::string ip = text;
  if (v6.sin6_scope_id != 0) {
    char name[IF_NAMESIZE] = {};
    const bool named = ::if_indextoname(v6.sin6_scope_id, name) != nullptr;
    ip += '%' + (named ? std::string(name) : std::to_string(v6.sin6_scope_id));
  }
  return Address{std::move(ip), ntohs(v6.sin6_port)};
}

}  // namespace muster::net
