#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>

#include "muster/launch/launch.h"

namespace muster::launch::kubernetes {
namespace {
namespace kubernetes_test {

using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Not;

Job small_job() {
  return {.name = "train",
          .image = "registry/train:1",
          .command = {"train.py", "--epochs", "3"},
          .token = "sesame"};
}

std::string text_of(const Job& job) {
  const auto text = manifests(job, Format::yaml);
  return text ? *text : "error: " + text.error().message;
}

constexpr std::string_view small_manifests = R"(---
apiVersion: v1
kind: Secret
metadata:
  name: train-token
  labels:
    app.kubernetes.io/name: muster
    app.kubernetes.io/instance: train
type: Opaque
immutable: true
stringData:
  token: sesame
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: train
  labels:
    app.kubernetes.io/name: muster
    app.kubernetes.io/instance: train
spec:
  podSelector:
    matchLabels:
      app.kubernetes.io/name: muster
      app.kubernetes.io/instance: train
  policyTypes:
  - Ingress
  ingress:
  - from:
    - podSelector:
        matchLabels:
          app.kubernetes.io/name: muster
          app.kubernetes.io/instance: train
---
apiVersion: v1
kind: Service
metadata:
  name: train
  labels:
    app.kubernetes.io/name: muster
    app.kubernetes.io/instance: train
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    app.kubernetes.io/name: muster
    app.kubernetes.io/instance: train
  ports:
  - name: scheduler
    port: 8118
---
apiVersion: batch/v1
kind: Job
metadata:
  name: train
  labels:
    app.kubernetes.io/name: muster
    app.kubernetes.io/instance: train
spec:
  completionMode: Indexed
  completions: 1
  parallelism: 1
  backoffLimit: 0
  podReplacementPolicy: Failed
  template:
    metadata:
      labels:
        app.kubernetes.io/name: muster
        app.kubernetes.io/instance: train
    spec:
      restartPolicy: Never
      subdomain: train
      terminationGracePeriodSeconds: 30
      automountServiceAccountToken: false
      enableServiceLinks: false
      securityContext:
        seccompProfile:
          type: RuntimeDefault
      volumes:
      - name: logs
        emptyDir: {}
      - name: token
        secret:
          secretName: train-token
          defaultMode: 256
      initContainers:
      - name: scheduler
        image: registry/train:1
        command:
        - muster
        - sidecar
        - muster
        - run
        - --preset
        - muster
        - --nnodes
        - "1"
        - -n
        - "1"
        - --scheduler
        - train-0.train:8118
        - --roles
        - scheduler
        - --log-dir
        - /var/log/muster
        - train.py
        - --epochs
        - "3"
        env:
        - name: MUSTER_TOKEN_FILE
          value: /etc/muster/token/token
        - name: MUSTER_RESOLVE_TIMEOUT
          value: "1800"
        - name: MUSTER_BIND
          valueFrom:
            fieldRef:
              fieldPath: status.podIP
        volumeMounts:
        - name: logs
          mountPath: /var/log/muster
        - name: token
          mountPath: /etc/muster/token
          readOnly: true
        securityContext:
          allowPrivilegeEscalation: false
        restartPolicy: Always
        ports:
        - name: scheduler
          containerPort: 8118
          protocol: TCP
        resources:
          requests:
            cpu: "100m"
            memory: "256Mi"
        startupProbe:
          exec:
            command:
            - muster
            - status
            - --scheduler
            - train-0.train:8118
            - --only-index
            - "0"
          periodSeconds: 2
          timeoutSeconds: 10
          failureThreshold: 150
        readinessProbe:
          exec:
            command:
            - muster
            - status
            - --scheduler
            - train-0.train:8118
            - --only-index
            - "0"
          periodSeconds: 10
          timeoutSeconds: 10
          failureThreshold: 3
        livenessProbe:
          exec:
            command:
            - muster
            - status
            - --scheduler
            - train-0.train:8118
            - --only-index
            - "0"
          periodSeconds: 20
          timeoutSeconds: 10
          failureThreshold: 3
      containers:
      - name: worker
        image: registry/train:1
        command:
        - muster
        - run
        - --preset
        - muster
        - --nnodes
        - "1"
        - -n
        - "1"
        - --scheduler
        - train-0.train:8118
        - --roles
        - worker
        - --log-dir
        - /var/log/muster
        - train.py
        - --epochs
        - "3"
        env:
        - name: MUSTER_TOKEN_FILE
          value: /etc/muster/token/token
        - name: MUSTER_RESOLVE_TIMEOUT
          value: "1800"
        volumeMounts:
        - name: logs
          mountPath: /var/log/muster
        - name: token
          mountPath: /etc/muster/token
          readOnly: true
        securityContext:
          allowPrivilegeEscalation: false
)";

TEST(KubernetesManifests, AreAHeadlessServiceAndAnIndexedJobWhoseSchedulerIsASideContainer) {
  EXPECT_THAT(text_of(small_job()), Eq(small_manifests));
}

TEST(KubernetesManifests, BringATokenWhereNobodyNamedASecretAndAPolicyUnlessTheJobIsOpen) {
  Job job = small_job();
  const auto has = [&](const char* kind) {
    return text_of(job).find(fmt::format("kind: {}\n", kind)) != std::string::npos;
  };
  job.token_secret = "named";
  EXPECT_TRUE(has("NetworkPolicy") && !has("Secret"));
  EXPECT_THAT(text_of(job), HasSubstr("secretName: named\n"));
  job.token_secret = "";
  job.tls_secret = "certificates";
  EXPECT_TRUE(has("NetworkPolicy") && !has("Secret"));
  EXPECT_THAT(text_of(job), Not(HasSubstr("MUSTER_TOKEN_FILE")));
  job.tls_secret = "";
  job.is_open = true;
  EXPECT_FALSE(has("NetworkPolicy") || has("Secret"));
  EXPECT_THAT(text_of(job), HasSubstr("        - --open\n"));
}

TEST(KubernetesManifests, OfAJobThatRecoversReplacePodsThatWereTakenAwayAndGiveUpOnWrongSettings) {
  Job job = small_job();
  job.max_restarts = 5;
  job.recovery_claim = "shared";
  const std::string text = text_of(job);
  EXPECT_THAT(text, HasSubstr(R"(
  backoffLimit: 5
  podReplacementPolicy: Failed
  podFailurePolicy:
    rules:
    - action: Ignore
      onPodConditions:
      - type: DisruptionTarget
        status: "True"
    - action: FailJob
      onExitCodes:
        containerName: worker
        operator: In
        values:
        - 2
        - 77
        - 78
        - 126
        - 127
)"));
  EXPECT_THAT(text, HasSubstr("        - --max-restarts\n        - \"5\"\n"));
  EXPECT_THAT(
      text, HasSubstr("        - name: MS_RECOVERY_PATH\n          value: /var/lib/muster/recovery/train\n"));
  EXPECT_THAT(text, HasSubstr("        persistentVolumeClaim:\n          claimName: shared\n"));
}

TEST(KubernetesManifests, PutTheSchedulerIntoAJobOfItsOwnWithANameOfItsOwn) {
  Job job = small_job();
  job.scheduler_place = SchedulerPlace::own_job;
  const std::string text = text_of(job);
  EXPECT_THAT(text, HasSubstr("metadata:\n  name: train-scheduler\n"));
  EXPECT_THAT(text, HasSubstr("      hostname: train-scheduler\n"));
  EXPECT_THAT(text, HasSubstr("        - train-scheduler.train:8118\n"));
  EXPECT_THAT(text, HasSubstr("        - --node-rank\n        - \"0\"\n"));
  EXPECT_THAT(text, Not(HasSubstr("sidecar")));
  EXPECT_THAT(text, Not(HasSubstr("only-index")));
  EXPECT_THAT(text, Not(HasSubstr("initContainers")));
}

TEST(KubernetesManifests, OfAJobSetLeaveServiceAndNamesToIt) {
  Job job = small_job();
  job.scheduler_place = SchedulerPlace::job_set;
  const std::string text = text_of(job);
  EXPECT_THAT(text, HasSubstr("---\napiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"));
  EXPECT_THAT(text, HasSubstr("    enableDNSHostnames: true\n    subdomain: train\n"
                              "    publishNotReadyAddresses: true\n"));
  EXPECT_THAT(text, HasSubstr("- train-scheduler-0-0.train:8118\n"));
  EXPECT_THAT(text, Not(HasSubstr("kind: Service")));
}

TEST(KubernetesManifests, OfAPresetWithoutASchedulerMeetAtTheFirstPod) {
  Job job = small_job();
  job.preset = "pytorch";
  job.nodes = 3;
  job.port = 29500;
  const std::string text = text_of(job);
  EXPECT_THAT(text, HasSubstr("- train-0.train:29500\n"));
  EXPECT_THAT(text, Not(HasSubstr("--roles")));
  EXPECT_THAT(text, Not(HasSubstr("initContainers")));
}

TEST(KubernetesManifests, MountSecretsAsFilesForTheirReaderAlone) {
  Job job = small_job();
  job.tls_secret = "certificates";
  EXPECT_THAT(text_of(job),
              HasSubstr("        secret:\n          secretName: certificates\n          defaultMode: 256\n"));
  EXPECT_THAT(text_of(job),
              HasSubstr("        - name: MUSTER_TLS_CONFIG\n          value: /etc/muster/tls/config.json\n"));
  job.user = 1000;  // then they belong to its group
  EXPECT_THAT(text_of(job), HasSubstr("          defaultMode: 288\n"));
  EXPECT_THAT(text_of(job), HasSubstr("        runAsUser: 1000\n        runAsGroup: 1000\n"
                                      "        runAsNonRoot: true\n        fsGroup: 1000\n"));
}

TEST(KubernetesManifests, MountAClaimTwiceAsOneVolume) {
  Job job = small_job();
  job.mounts = {{.claim = "data", .path = "/data"}, {.claim = "data", .path = "/again", .read_only = true}};
  const std::string text = text_of(job);
  EXPECT_THAT(text,
              HasSubstr("      - name: volume-0\n        persistentVolumeClaim:\n          claimName: data\n"
                        "      initContainers:"));
  EXPECT_THAT(text,
              HasSubstr("        - name: volume-0\n          mountPath: /again\n          readOnly: true\n"));
}

TEST(KubernetesManifests, KeepDollarsFromKubernetes) {
  Job job = small_job();
  job.environment = {{"PRICE", "$(HOME) $$ 5$"}};
  EXPECT_THAT(text_of(job), HasSubstr("value: \"$$(HOME) $$$$ 5$$\"\n"));
}

struct Wrong {
  std::function<void(Job&)> change;
  std::string message;
};

TEST(KubernetesManifests, AreRefusedWithTheFlagItsValueAndWhatIsAllowed) {
  const std::string label = "small letters, digits and '-' are allowed, a letter first, 63 at most";
  const std::vector<Wrong> table = {
      {[](Job& job) { job.name = ""; }, "give the job a name, for example: --name train"},
      {[](Job& job) { job.name = "Train"; }, "--name 'Train': " + label},
      {[](Job& job) { job.name = "1a"; }, "--name '1a': " + label},
      {[](Job& job) { job.name = "a-"; }, "--name 'a-': " + label},
      {[](Job& job) {
         job.name = std::string(60, 'a');
         job.nodes = 1001;
       },
       fmt::format("--name '{0}': the pod '{0}-1000' would have a name of 65 letters, and 63 are allowed",
                   std::string(60, 'a'))},
      {[](Job& job) { job.name_space = "a.b"; }, "--namespace 'a.b': " + label},
      {[](Job& job) { job.image = ""; },
       "name the image that holds the script and Muster, for example: --image registry/train:1"},
      {[](Job& job) { job.image = "a b"; }, "--image 'a b': the name of an image has no space"},
      {[](Job& job) { job.nodes = 0; }, "--nnodes 0: a whole number from 1 to 16384 is allowed"},
      {[](Job& job) { job.slots = 0; }, "-n 0: a whole number from 1 to 16384 is allowed"},
      {[](Job& job) { job.nodes = job.slots = 200; },
       "--nnodes 200 with -n 200: a job has at most 16384 workers"},
      {[](Job& job) { job.port = 80; }, "--port 80: a whole number from 1024 to 65535 is allowed"},
      {[](Job& job) { job.grace_s = -1; }, "--grace -1: a whole number from 0 to 86400 is allowed"},
      {[](Job& job) {
         job.resources = {{"cpu", "four"}};
       },
       "--limit 'cpu=four': say it like cpu=4, memory=16Gi or nvidia.com/gpu=8"},
      {[](Job& job) {
         job.resources = {{"nvidia.com/", "4"}};
       },
       "--limit 'nvidia.com/=4': say it like cpu=4, memory=16Gi or nvidia.com/gpu=8"},
      {[](Job& job) { job.shared_memory = "1GB"; }, "--shm '1GB': say it like 1Gi"},
      {[](Job& job) {
         job.node_selector = {{"a b", "c"}};
       },
       "--node-selector 'a b=c': say it like topology.kubernetes.io/zone=a"},
      {[](Job& job) { job.mounts = {{.claim = "data", .path = "data"}}; },
       "--volume 'data:data': say it like claim:/data or claim:/data:ro"},
      {[](Job& job) {
         job.mounts = {{.claim = "a", .path = "/x"}, {.claim = "b", .path = "/x"}};
       },
       "--volume 'b:/x': something else is mounted there already"},
      {[](Job& job) { job.mounts = {{.claim = "a", .path = "/var/log/muster"}}; },
       "--volume 'a:/var/log/muster': something else is mounted there already"},
      {[](Job& job) {
         job.environment = {{"1A", "b"}};
       },
       "--env '1A=b': the name of a variable has letters, digits and '_' only"},
      {[](Job& job) {
         job.environment = {{"MS_ROLE", "MS_SCHED"}};
       },
       "--env MS_ROLE: `muster k8s` sets it itself, from its other options"},
      {[](Job& job) { job.tls_secret = job.token_secret = "s"; },
       "--tls-secret and --token-secret: a job has certificates or a token, not both"},
      {[](Job& job) {
         job.is_open = true;
         job.token_secret = "s";
       },
       "--open lets unauthorized peers in, and --token-secret keeps them out: leave one out"},
      {[](Job& job) { job.token_secret = "a/b"; },
       "--token-secret 'a/b': small letters, digits, '-' and '.' are allowed"},
      {[](Job& job) { job.max_restarts = 3; },
       "--max-restarts 3: a pod that takes another's place finds recovery points only in a volume that all "
       "pods can write: --recovery-claim CLAIM"},
      {[](Job& job) { job.recovery_claim = "c"; },
       "--recovery-claim c: say how often a process may be started again, for example: --max-restarts 10"},
      {[](Job& job) {
         job.preset = "mpi";
         job.scheduler_place = SchedulerPlace::own_job;
       },
       "--scheduler-job: the preset 'mpi' has no scheduler"},
      {[](Job& job) { job.command = {}; },
       "name what to run, for example: muster k8s --name train --image registry/train:1 train.py"},
  };
  for (const Wrong& wrong : table) {
    Job job = small_job();
    wrong.change(job);
    EXPECT_THAT(text_of(job), Eq("error: " + wrong.message));
  }
}

}  // namespace kubernetes_test
}  // namespace
}  // namespace muster::launch::kubernetes
