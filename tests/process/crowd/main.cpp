// See crowd.h. For ./dev bench cluster and the process tests.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "crowd.h"

int main(int count, char** arguments) {
  using namespace muster;
  CLI::App app{"Many peers of one scheduler"};
  app.require_subcommand(1);
  std::string where;
  double seconds = 10;
  crowd::NodesOptions nodes;
  crowd::FloodOptions flood;
  const auto command = [&](const char* name, const char* what) {
    CLI::App* added = app.add_subcommand(name, what);
    added->add_option("--address", where, "host:port")->required();
    added->add_option("--seconds", seconds, "how long");
    return added;
  };
  CLI::App* of_nodes = command("nodes", "register, beat and leave");
  of_nodes->add_option("--count", nodes.count, "of nodes");
  of_nodes->add_option("--worker-num", nodes.worker_num, "of the job");
  of_nodes->add_option("--first-id", nodes.first_id, "node ids count up from it");
  of_nodes->add_option("--interval", nodes.interval_s, "seconds between two starts");
  CLI::App* of_flood = command("flood", "unauthorized peers: silent ones, and malformed frames");
  of_flood->add_option("--silent", flood.silent, "connections");
  of_flood->add_option("--frames-per-second", flood.frames_per_second, "malformed");
  CLI::App* of_sink = command("sink", "accepts, reads and closes");
  CLI11_PARSE(app, count, arguments);
  const auto address = net::parse_host_port(where);
  if (!address) {
    fmt::print(stderr, "{}\n", address.error().message);
    return 2;
  }
  net::raise_descriptor_limit();
  const net::Address target{address->host, address->port};
  if (of_sink->parsed()) return crowd::run_sink(target, seconds);
  flood.target = nodes.scheduler = target;
  flood.seconds = nodes.seconds = seconds;
  return of_flood->parsed() ? crowd::run_flood(flood) : crowd::run_nodes(nodes);
}
