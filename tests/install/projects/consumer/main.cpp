// Includes every door and calls into several rooms: what the installed headers need is installed, and the
// archive is whole.
#include <cstdio>

#include "muster/base/base.h"
#include "muster/cluster/cluster.h"
#include "muster/collective/collective.h"
#include "muster/data/data.h"
#include "muster/graph/graph.h"
#include "muster/launch/launch.h"
#include "muster/net/net.h"
#include "muster/nn/nn.h"
#include "muster/tensor/tensor.h"
#include "muster/train/train.h"

int main() {
  // Without a role, init() says what is missing.
  const auto role = muster::train::init(muster::FixedEnvironment{{}});
  if (role) return 1;
  std::puts(role.error().message.c_str());
  return role.error().message.find("MS_ROLE") == std::string::npos ? 2 : 0;
}
