#include "muster/launch/ports.h"

#include <fmt/format.h>

namespace muster::launch {
namespace {

Result<> reserve_in_range(ReservedPorts& ports, const PortsWanted& wanted, const std::string& ip) {
  const int size = wanted.max - wanted.min + 1;
  const auto start = static_cast<int>(entropy() % static_cast<std::uint64_t>(size));
  for (int i = 0; i < size && std::ssize(ports.reservations) < wanted.count; ++i) {
    const auto port = static_cast<std::uint16_t>(wanted.min + (start + i) % size);
    if (auto opened = net::PortReservation::open(ip, port)) ports.reservations.push_back(*std::move(opened));
  }
  if (std::ssize(ports.reservations) == wanted.count) return {};
  return fail(
      Code::io,
      fmt::format("this host has only {} of {} free ports from {} to {}: end what uses them (ss -ltn)",
                  ports.reservations.size(), wanted.count, wanted.min, wanted.max));
}

}  // namespace

std::vector<std::uint16_t> ReservedPorts::numbers() const {
  std::vector<std::uint16_t> result;
  for (const net::PortReservation& reservation : reservations) result.push_back(reservation.port());
  return result;
}

Result<ReservedPorts> reserve_ports(const PortsWanted& wanted, Reach reach) {
  const std::string ip = reach == Reach::here ? "127.0.0.1" : "0.0.0.0";
  ReservedPorts ports;
  if (wanted.max != 0) {
    MUSTER_TRY_VOID(reserve_in_range(ports, wanted, ip));
    return ports;
  }
  for (std::int64_t i = 0; i < wanted.count; ++i) {
    MUSTER_TRY(auto opened, net::PortReservation::open(ip));
    ports.reservations.push_back(std::move(opened));
  }
  return ports;
}

}  // namespace muster::launch
