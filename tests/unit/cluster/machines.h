// Helpers that the tests of single steps share.
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
  const auto look_at = [&](PeerId to, const Message& message) {
    if (const auto* body = std::get_if<Body>(&message.body); body != nullptr && to == peer)
      found.push_back(*body);
  };
  for (const auto& action : actions) {
    if (const auto* send = std::get_if<scheduler_action::Send>(&action)) look_at(send->peer, send->message);
    if (const auto* share = std::get_if<scheduler_action::Share>(&action))
      look_at(share->peer, *share->message);
  }
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
