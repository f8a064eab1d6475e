#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "muster/net/address.h"
#include "muster/net/security.h"

namespace muster::net {
namespace {

constexpr std::size_t names_shown_max = 8;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool equals(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view without_last_dot(std::string_view name) {
  return name.ends_with('.') ? name.substr(0, name.size() - 1) : name;
}

// "*.example.com" is good for one label before ".example.com", and for nothing shorter than two.
bool fits_host(std::string_view pattern, std::string_view host) {
  pattern = without_last_dot(pattern);
  host = without_last_dot(host);
  if (host.empty()) return false;
  if (!pattern.starts_with("*.")) return equals(pattern, host);
  const std::string_view rest = pattern.substr(1);
  const std::size_t dot = host.find('.');
  return dot != std::string_view::npos && dot > 0 && rest.find('.', 1) != std::string_view::npos &&
         equals(rest, host.substr(dot));
}

bool fits(const PeerNames& names, const std::string& host) {
  if (auto ip = parse_ip(host)) {
    const std::string bare = ip->substr(0, ip->find('%'));  // no certificate knows an interface
    return std::ranges::find(names.addresses, bare) != names.addresses.end();
  }
  return std::ranges::any_of(names.hosts, [&](const std::string& name) { return fits_host(name, host); });
}

std::string list(std::vector<std::string> names) {
  names.resize(std::min(names.size(), names_shown_max + 1));
  if (names.size() > names_shown_max) names.back() = "...";
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string all_of(const PeerNames& names) {
  std::vector<std::string> all = names.hosts;
  all.insert(all.end(), names.addresses.begin(), names.addresses.end());
  for (const std::string& id : names.node_ids) all.push_back(std::string(node_uri_prefix) + id);
  return all.empty() ? "no names at all (the common name does not count)" : list(std::move(all));
}

std::string all_of(const Identity& expected) {
  std::vector<std::string> all;
  for (const std::string& host : expected.hosts)
    if (!host.empty() && std::ranges::find(all, host) == all.end()) all.push_back(host);
  if (!expected.node_id.empty()) all.push_back(std::string(node_uri_prefix) + expected.node_id);
  return list(std::move(all));
}

}  // namespace

Result<> check_identity(const PeerNames& names, const Identity& expected) {
  if (!names.node_ids.empty()) {
    if (std::ranges::find(names.node_ids, expected.node_id) != names.node_ids.end()) return {};
    return fail(Code::refused, fmt::format("its certificate ({}) was made for node {}, not for node {}",
                                           names.subject, list(names.node_ids), expected.node_id));
  }
  if (std::ranges::any_of(expected.hosts, [&](const std::string& host) { return fits(names, host); }))
    return {};
  return fail(Code::refused, fmt::format("its certificate ({}) is for {}, and for none of {}", names.subject,
                                         all_of(names), all_of(expected)));
}

}  // namespace muster::net
