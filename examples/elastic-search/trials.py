"""Prints a search for the best learning rate and width, with one Kubernetes Job per trial.

    python3 trials.py > search.yaml

Each trial takes one GPU, in the queue of a virtual cluster that borrows, with the lowest priority. Kueue starts as many
as there are free GPUs. Where the owner of a GPU asks for it, one trial stops, waits, and begins again; one that ended
has ended.
"""

from __future__ import annotations

import argparse
import itertools

PROGRAM = '''\
"""One trial: trains a small network, and says how good it became in its last line."""
import argparse
import json

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float)
parser.add_argument("--width", type=int)
given = parser.parse_args()
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)


def network(width):
    return torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.Tanh(), torch.nn.Linear(width, 1)).to(device)


truth, model = network(32), network(given.width)
optimizer = torch.optim.SGD(model.parameters(), lr=given.rate)
for step in range(5000):
    batch = torch.randn(256, 64, device=device)
    loss = torch.nn.functional.mse_loss(model(batch), truth(batch).detach())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(json.dumps({"rate": given.rate, "width": given.width, "loss": round(loss.item(), 5)}), flush=True)
'''
CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {{name: {search}-program}}
data:
  trial.py: |
{program}"""
JOB = """\
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {search}-{number}
  labels:
    search: {search}
    kueue.x-k8s.io/queue-name: {queue}
    kueue.x-k8s.io/priority-class: {priority}
spec:
  backoffLimit: 2
  # a machine that was lost is no failure of the trial
  podFailurePolicy: {{rules: [{{action: Ignore, onPodConditions: [{{type: DisruptionTarget}}]}}]}}
  template:
    metadata: {{labels: {{search: {search}}}}}
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 5  # a trial has nothing to save, and others wait for its GPU
      runtimeClassName: nvidia
      containers:
        - name: trial
          image: pytorch/pytorch:2.4.1-cuda12.1-cudnn9-runtime
          command: [python3, /opt/program/trial.py, --rate={rate}, --width={width}]
          resources:
            requests: {{cpu: 1, memory: 4Gi, nvidia.com/gpu: 1}}
            limits: {{cpu: 1, memory: 4Gi, nvidia.com/gpu: 1}}
          volumeMounts: [{{name: program, mountPath: /opt/program}}]
      volumes: [{{name: program, configMap: {{name: {search}-program}}}}]"""


def main() -> None:
    """Prints all objects."""
    parser = argparse.ArgumentParser(description="Prints a search as Kubernetes' Jobs.")
    parser.add_argument("--search", default="search", help="its name")
    parser.add_argument("--queue", default="default", help="the virtual cluster that borrows")
    parser.add_argument("--priority", default="oppo")
    parser.add_argument("--rates", default="0.3,0.1,0.03,0.01", help="learning rates, with commas between")
    parser.add_argument("--widths", default="16,64,256", help="widths of the network")
    given = vars(parser.parse_args())
    program = "".join(f"    {line}".rstrip() + "\n" for line in PROGRAM.splitlines())
    print(CONFIG_MAP.format(program=program, **given), end="")
    grid = itertools.product(given["rates"].split(","), given["widths"].split(","))
    for number, (rate, width) in enumerate(grid):
        print(JOB.format(number=number, rate=rate, width=width, **given))


if __name__ == "__main__":
    main()
