// What the tests of single steps share.
#pragma once

#include <vector>

#include "muster/cluster/node.h"
#include "muster/cluster/scheduler.h"

namespace muster::cluster {

template <class T, class Actions>
std::vector<T> all_of_kind(const Actions& actions) {
  std::vector<T> found;
  for (const auto& action : actions)
    if (const auto* match = std::get_if<T>(&action)) found.push_back(*match);
  return found;
}

// The bodies of one kind that are sent to `peer`.
template <class Body>
std::vector<Body> sent_to(PeerId peer, const SchedulerActions& actions) {
  std::vector<Body> found;
  for (const auto& send : all_of_kind<scheduler_action::Send>(actions))
    if (const auto* body = std::get_if<Body>(&send.message.body); body != nullptr && send.peer == peer)
      found.push_back(*body);
  return found;
}

template <class Body>
std::vector<Body> sent(const NodeActions& actions) {
  std::vector<Body> found;
  for (const auto& send : all_of_kind<node_action::Send>(actions))
    if (const auto* body = std::get_if<Body>(&send.message.body)) found.push_back(*body);
  return found;
}

}  // namespace muster::cluster
