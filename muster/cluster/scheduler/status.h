// Status of a job as its scheduler sees it now, for `muster status`.
#pragma once

#include "muster/cluster/messages.h"

namespace muster::cluster {

class Job;
struct Peer;

message::Status status_of(const Job& job);
// Since its last word; of one that a restarted scheduler awaits: since that listens.
Duration silence_of(const Job& job, const Peer& peer);

}  // namespace muster::cluster
