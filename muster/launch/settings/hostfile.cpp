#include "muster/launch/settings/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "muster/launch/settings/hostlist.h"
#include "muster/launch/settings/wrong.h"

namespace muster::launch {
namespace {

constexpr std::size_t name_bytes_max = 255;
constexpr std::size_t line_shown_bytes_max = 64;

std::string shown_line(std::string_view text) {
  std::string result(text.substr(0, line_shown_bytes_max));
  for (char& c : result)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text.size() > line_shown_bytes_max ? result + "..." : result;
}

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
         c == '_' || c == ':' || c == '%' || c == '@';
}

// A name is handed to ssh and to mpirun: one that begins like an option is not a name.
Result<std::string> host_name(std::string_view text) {
  if (text.empty()) return wrong("a host without a name");
  if (text.size() > name_bytes_max || text.front() == '-' || text.find("@-") != std::string_view::npos ||
      !std::all_of(text.begin(), text.end(), is_name_character))
    return wrong(fmt::format("'{}' is not the name of a host", shown_line(text)));
  return std::string(text);
}

Result<std::int64_t> slot_number(std::string_view text, std::string_view host) {
  std::int64_t slots = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (error != std::errc{} || end != text.data() + text.size() || slots < 1)
    return wrong(fmt::format("host '{}' has '{}' slots: a whole number from 1 on", shown_line(host),
                             shown_line(text)));
  return slots;
}

// The first comma that is not in a range such as "n[1,3]", else the end.
std::size_t comma_outside_brackets(std::string_view text) {
  bool is_inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == ']') is_inside = text[i] == '[';
    if (text[i] == ',' && !is_inside) return i;
  }
  return text.size();
}

// "name", "name:slots", "[address]:slots"; an address of IPv6 without brackets has no slots.
Result<HostSlots> parse_host(std::string_view text) {
  std::string_view name = text;
  std::string_view slots;
  const auto bracket = text.find(']');
  const auto open = text.find('[');
  if (open != std::string_view::npos && bracket != std::string_view::npos) {
    name = text.substr(open + 1, bracket - open - 1);
    const std::string_view rest = text.substr(bracket + 1);
    if (open != 0 || (!rest.empty() && rest.front() != ':'))
      return wrong(fmt::format("'{}' is not the name of a host", shown_line(text)));
    slots = rest.empty() ? rest : rest.substr(1);
    if (!rest.empty() && slots.empty()) MUSTER_TRY_VOID(slot_number(slots, name));
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    name = text.substr(0, text.find(':'));
    slots = text.substr(text.find(':') + 1);
    if (slots.empty()) MUSTER_TRY_VOID(slot_number(slots, name));
  }
  HostSlots host;
  MUSTER_TRY(host.name, host_name(name));
  if (!slots.empty()) {
    MUSTER_TRY(host.slots, slot_number(slots, name));
  }
  return host;
}

// "n[1-3,07]:2" as Slurm's lists of nodes have it is four hosts with two slots each, anything else one host.
Result<std::vector<HostSlots>> parse_nodes(std::string_view text) {
  const auto bracket = text.rfind(']');
  if (text.find('[') == 0 || bracket == std::string_view::npos) {
    MUSTER_TRY(HostSlots host, parse_host(text));
    return std::vector{std::move(host)};
  }
  const auto colon = std::min(text.find(':', bracket), text.size());
  auto names = parse_hostlist(text.substr(0, colon));
  if (!names) return wrong(fmt::format("'{}': {}", shown_line(text), names.error().message));
  std::vector<HostSlots> hosts;
  for (std::string& name : *names) {
    name += text.substr(colon);
    MUSTER_TRY(hosts.emplace_back(), parse_host(name));
  }
  return hosts;
}

// "slots = 4" is "slots=4".
std::string without_spaces_at_equals(std::string_view line) {
  std::string text;
  for (const char c : line) {
    const bool is_space = c == ' ' || c == '\t';
    if (c == '=') text.resize(trimmed(text).size());
    if (!is_space || !text.ends_with('=')) text += c;
  }
  return text;
}

// The slots that a word behind a host says, 0 where it says something else that other launchers know.
Result<std::int64_t> slots_in(std::string_view word, std::string_view host) {
  const auto equals = std::min(word.find('='), word.size());
  const std::string_view key = word.substr(0, equals);
  if (key == "slots" || key == "cpu" || key == "cpus")
    return slot_number(word.substr(std::min(equals + 1, word.size())), host);
  const bool is_known = key == "max_slots" || key == "max-slots" || key == "ifhn" || key == "binding";
  if (is_known && equals < word.size()) return 0;
  return wrong(fmt::format("'{}' after host '{}': write slots=<number>", shown_line(word), host));
}

Result<std::vector<HostSlots>> parse_line(std::string_view whole) {
  const std::string line = without_spaces_at_equals(whole);
  const auto space = std::min(line.find_first_of(" \t"), line.size());
  MUSTER_TRY(auto hosts, parse_nodes(std::string_view(line).substr(0, space)));
  for (std::string_view rest = trimmed(std::string_view(line).substr(space)); !rest.empty();) {
    const auto end = std::min(rest.find_first_of(" \t"), rest.size());
    MUSTER_TRY(const std::int64_t slots, slots_in(rest.substr(0, end), hosts.front().name));
    rest = trimmed(rest.substr(end));
    if (slots == 0) continue;
    for (HostSlots& host : hosts) host.slots = slots;
  }
  return hosts;
}

// A host on several lines has the slots of all of them, one on a line without a number: so PBS and the
// machine files of MPI list it.
void add_host(std::vector<HostSlots>& hosts, HostSlots host) {
  const auto known = std::find_if(hosts.begin(), hosts.end(),
                                  [&](const HostSlots& other) { return other.name == host.name; });
  if (known == hosts.end())
    hosts.push_back(std::move(host));
  else
    known->slots = std::max<std::int64_t>(known->slots, 1) + std::max<std::int64_t>(host.slots, 1);
}

}  // namespace

Result<std::vector<HostSlots>> parse_hosts(std::string_view text) {
  std::vector<HostSlots> hosts;
  for (std::string_view rest = text;;) {
    const auto comma = comma_outside_brackets(rest);
    MUSTER_TRY(auto nodes, parse_nodes(trimmed(rest.substr(0, comma))));
    std::move(nodes.begin(), nodes.end(), std::back_inserter(hosts));
    if (hosts.size() > hosts_max) return wrong(fmt::format("more than {} hosts", hosts_max));
    if (comma == rest.size()) return hosts;
    rest.remove_prefix(comma + 1);
  }
}

Result<std::vector<HostSlots>> parse_hostfile(std::string_view text, std::string_view name) {
  if (text.size() > hostfile_bytes_max)
    return wrong(
        fmt::format("{}: a hostfile of {} bytes: at most {}", name, text.size(), hostfile_bytes_max));
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // how some editors mark UTF-8
  std::vector<HostSlots> hosts;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view whole = text.substr(0, end);
    const std::string_view line = trimmed(whole.substr(0, std::min(whole.find('#'), whole.size())));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    auto nodes = parse_line(line);
    if (!nodes) return wrong(fmt::format("{}, line {}: {}", name, number, nodes.error().message));
    for (HostSlots& host : *nodes) add_host(hosts, std::move(host));
    if (hosts.size() > hosts_max) return wrong(fmt::format("{}: more than {} hosts", name, hosts_max));
  }
  if (hosts.empty()) return wrong(fmt::format("{}: it names no host", name));
  return hosts;
}

}  // namespace muster::launch
