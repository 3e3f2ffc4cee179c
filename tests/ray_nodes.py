"""A cluster of Ray on this machine, each node its own processes: ``python ray_nodes.py``.

Says its address, then the number of each node that it adds. Obeys lines: "add" adds a node of one processor core, "kill"
kills the last one added, the end of the input ends all. A process of its own, so that tests load no Ray.
"""

import os
import sys

os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
os.environ.pop("RAY_ADDRESS", None)

from ray.cluster_utils import Cluster


def main() -> None:
    room = 100 * 2**20
    cluster = Cluster()
    head = cluster.add_node(num_cpus=1, include_dashboard=False, object_store_memory=room)
    print(cluster.address, head.node_id, flush=True)
    nodes = []
    for line in sys.stdin:
        if line.strip() == "add":
            nodes.append(cluster.add_node(num_cpus=1, object_store_memory=room))
            print(nodes[-1].node_id, flush=True)
        elif line.strip() == "kill":
            cluster.remove_node(nodes.pop(), allow_graceful=False)
            print("killed", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
