package launch_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gomem/gomem/distrib/cluster/launch"
	"github.com/gomem/gomem/internal/longtest"
)

// environment is variables as "A=1 B=2", seen by a host.
func environment(vars, hostname, hosts string) launch.Environment {
	m := map[string]string{}
	for _, v := range strings.Fields(vars) {
		name, value, _ := strings.Cut(v, "=")
		m[name] = value
	}
	lookup := func(name string) (string, bool) { v, ok := m[name]; return v, ok }
	return launch.Environment{Lookup: lookup, Hostname: hostname, Hosts: hosts}
}

const pod = "127.0.0.1 localhost\n10.1.0.7\ttrain-2.workers.default.svc.cluster.local\ttrain-2\n"

// TestFind: what each launcher says is understood.
func TestFind(t *testing.T) {
	two := 2
	for _, c := range []struct {
		name, vars string
		host       string
		flags      launch.Flags
		want       launch.World
	}{
		{name: "alone", want: launch.World{Launcher: "none", Size: 1, Job: "gomem"}},
		{name: "torchrun",
			vars: "RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=a " +
				"MASTER_PORT=29500 TORCHELASTIC_RUN_ID=j TORCHELASTIC_RESTART_COUNT=2",
			want: launch.World{Launcher: "torchrun", Rank: 3, Size: 4, Local: 1, LocalSize: 2,
				Master: "a:29500", Job: "j", Restart: 2}},
		{name: "torchrun with a store of its own",
			vars: "RANK=0 WORLD_SIZE=2 MASTER_ADDR=::1 MASTER_PORT=29500 " +
				"TORCHELASTIC_USE_AGENT_STORE=True",
			want: launch.World{Launcher: "torchrun", Size: 2, Master: "[::1]:29501", Job: "gomem"}},
		{name: "an address in brackets", vars: "RANK=0 WORLD_SIZE=2 MASTER_ADDR=[::1]",
			want: launch.World{Launcher: "torchrun", Size: 2, Master: "[::1]:29400", Job: "gomem"}},
		{name: "and with a port", vars: "RANK=0 WORLD_SIZE=2 MASTER_ADDR=[::1]:7",
			want: launch.World{Launcher: "torchrun", Size: 2, Master: "[::1]:7", Job: "gomem"}},
		{name: "twice the same port", vars: "RANK=0 WORLD_SIZE=2 MASTER_ADDR=a:7 MASTER_PORT=7",
			want: launch.World{Launcher: "torchrun", Size: 2, Master: "a:7", Job: "gomem"}},
		{name: "the flag in brackets", flags: launch.Flags{Master: "[::1]"},
			vars: "RANK=0 WORLD_SIZE=2",
			want: launch.World{Launcher: "torchrun", Size: 2, Master: "[::1]:29400", Job: "gomem"}},
		{name: "the flag in brackets, with a port", flags: launch.Flags{Master: "[::1]:7"},
			vars: "RANK=0 WORLD_SIZE=2",
			want: launch.World{Launcher: "torchrun", Size: 2, Master: "[::1]:7", Job: "gomem"}},
		{name: "the flag without brackets", flags: launch.Flags{Master: "::1"},
			vars: "RANK=0 WORLD_SIZE=2",
			want: launch.World{Launcher: "torchrun", Size: 2, Master: "[::1]:29400", Job: "gomem"}},
		{name: "the flag says where", flags: launch.Flags{Master: "b:7", Job: "x"},
			vars: "RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=29500",
			want: launch.World{Launcher: "torchrun", Size: 2, Master: "b:7", Job: "x"}},
		{name: "srun", vars: "SLURM_PROCID=5 SLURM_NTASKS=8 SLURM_LOCALID=1 SLURM_JOB_ID=77 " +
			"SLURM_STEP_ID=3 SLURM_STEP_NODELIST=n[03-04,7]",
			want: launch.World{Launcher: "Slurm", Rank: 5, Size: 8, Local: 1, Master: "n03:17003",
				Job: "slurm-77.3"}},
		{name: "a step is smaller than its allocation", vars: "SLURM_PROCID=0 SLURM_NTASKS=8 " +
			"SLURM_STEP_NUM_TASKS=1 SLURM_JOB_ID=77 SLURM_STEP_ID=4294967290",
			want: launch.World{Launcher: "Slurm", Size: 1, Job: "slurm-77.4294967290"}},
		{name: "sbatch without srun", vars: "SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_JOB_ID=77",
			want: launch.World{Launcher: "none", Size: 1, Job: "gomem"}},
		{name: "torchrun in srun", vars: "SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0 RANK=5 " +
			"WORLD_SIZE=8 MASTER_ADDR=a",
			want: launch.World{Launcher: "torchrun", Rank: 5, Size: 8, Master: "a:29400",
				Job: "gomem"}},
		{name: "mpirun in Slurm: its daemons are tasks, too",
			vars: "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 " +
				"OMPI_COMM_WORLD_LOCAL_SIZE=2 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0 " +
				"SLURM_STEP_NODELIST=n[1-2] PMIX_NAMESPACE=ns1",
			want: launch.World{Launcher: "Open MPI", Rank: 3, Size: 4, Local: 1, LocalSize: 2,
				Master: "n1:29400", Job: "ns1"}},
		{name: "mpirun", vars: "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 " +
			"OMPI_MCA_orte_hnp_uri=5.0;tcp://10.0.0.1,192.168.0.9:4567",
			want: launch.World{Launcher: "Open MPI", Rank: 1, Size: 2, Master: "10.0.0.1:29400",
				Job: "gomem"}},
		{name: "mpirun on one machine", vars: "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 " +
			"OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2",
			want: launch.World{Launcher: "Open MPI", Rank: 1, Size: 2, Local: 1, LocalSize: 2,
				Master: "127.0.0.1:29400", Job: "gomem"}},
		{name: "Hydra", vars: "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2",
			want: launch.World{Launcher: "PMI", Rank: 1, Size: 2, Local: 1, LocalSize: 2,
				Master: "127.0.0.1:29400", Job: "gomem"}},
		{name: "PMIx has no size", vars: "PMIX_RANK=1 PMIX_NAMESPACE=p",
			flags: launch.Flags{Size: 2, Master: "m"},
			want:  launch.World{Launcher: "PMIx", Rank: 1, Size: 2, Master: "m:29400", Job: "p"}},
		{name: "an indexed job", vars: "JOB_COMPLETION_INDEX=2", host: "train-2",
			flags: launch.Flags{Size: 4},
			want: launch.World{Launcher: "Kubernetes", Rank: 2, Size: 4, Job: "train",
				Master: "train-0.workers.default.svc.cluster.local:29400"}},
		{name: "an indexed job that knows its size", vars: "JOB_COMPLETION_INDEX=2 WORLD_SIZE=4 " +
			"MASTER_PORT=5", host: "train-2",
			want: launch.World{Launcher: "Kubernetes", Rank: 2, Size: 4, Job: "train",
				Master: "train-0.workers.default.svc.cluster.local:5"}},
		{name: "a JobSet", host: "set-w-0-1",
			vars: "JOB_COMPLETION_INDEX=1 WORLD_SIZE=4 JOBSET_NAME=set REPLICATED_JOB_NAME=w " +
				"JOB_INDEX=0",
			want: launch.World{Launcher: "Kubernetes", Rank: 1, Size: 4, Job: "set-w-0",
				Master: "set-w-0-0.set:29400"}},
		{name: "flags", flags: launch.Flags{Rank: &two, Size: 3, Master: "10.0.0.1"},
			want: launch.World{Launcher: "flags", Rank: 2, Size: 3, Master: "10.0.0.1:29400",
				Job: "gomem"}},
		{name: "flags that agree", vars: "RANK=2 WORLD_SIZE=3 MASTER_ADDR=a",
			flags: launch.Flags{Rank: &two, Size: 3},
			want: launch.World{Launcher: "torchrun", Rank: 2, Size: 3, Master: "a:29400",
				Job: "gomem"}},
	} {
		got, err := launch.Find(environment(c.vars, c.host, pod), c.flags)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// TestFindRefuses: what is missing or contradicts itself is named with its values.
func TestFindRefuses(t *testing.T) {
	three, minus := 3, -1
	for _, c := range []struct {
		name, vars string
		host       string
		flags      launch.Flags
		want       string
	}{
		{name: "sizes", vars: "RANK=0 WORLD_SIZE=4", flags: launch.Flags{Size: 8},
			want: "WORLD_SIZE=4 contradicts --workers=8"},
		{name: "ranks", vars: "RANK=0 WORLD_SIZE=4", flags: launch.Flags{Rank: &three},
			want: "RANK=0 contradicts --rank=3"},
		{name: "launchers", vars: "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_ID=0 WORLD_SIZE=4",
			want: "SLURM_NTASKS=2 contradicts WORLD_SIZE=4"},
		{name: "rank without size", vars: "RANK=0", want: "RANK=0 is set, but not of how many"},
		{name: "size without rank", vars: "WORLD_SIZE=4", want: "WORLD_SIZE=4 says"},
		{name: "the same by a flag", flags: launch.Flags{Size: 4}, want: "--workers=4 says"},
		{name: "beyond", vars: "RANK=4 WORLD_SIZE=4", want: "RANK=4 is out of range: WORLD_SIZE=4"},
		{name: "no number", vars: "RANK=x WORLD_SIZE=4", want: "RANK=x is not a number"},
		{name: "negative", vars: "RANK=-1 WORLD_SIZE=4", want: "RANK=-1 is not a number"},
		{name: "negative flag", flags: launch.Flags{Rank: &minus, Size: 2},
			want: "--rank=-1 is not a number"},
		{name: "negative size", flags: launch.Flags{Size: -2}, want: "--workers=-2 is not"},
		{name: "no one", vars: "RANK=0 WORLD_SIZE=0", want: "WORLD_SIZE=0: a job has at least one"},
		{name: "nowhere", vars: "RANK=0 WORLD_SIZE=2", want: "set MASTER_ADDR or give --master"},
		{name: "two ports", vars: "RANK=0 WORLD_SIZE=2 MASTER_ADDR=a:7 MASTER_PORT=8",
			want: `MASTER_ADDR has port "7", MASTER_PORT is 8`},
		{name: "port", vars: "RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=70000",
			want: `port "70000"`},
		{name: "port of the flag", vars: "RANK=0 WORLD_SIZE=2",
			flags: launch.Flags{Master: "a:b"}, want: `port "b"`},
		{name: "list", vars: "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_JOB_ID=1 " +
			"SLURM_STEP_NODELIST=n[1-", want: `SLURM_STEP_NODELIST: list of hosts "n[1-"`},
		{name: "pod without a domain", vars: "JOB_COMPLETION_INDEX=1 WORLD_SIZE=2", host: "other-1",
			want: "pod other-1 has no domain"},
		{name: "replicas", vars: "JOB_COMPLETION_INDEX=1 WORLD_SIZE=2 JOBSET_NAME=s JOB_INDEX=1 " +
			"REPLICATED_JOB_NAME=w", host: "s-w-1-1", want: "JOB_INDEX=1"},
		{name: "half a JobSet", vars: "JOB_COMPLETION_INDEX=1 WORLD_SIZE=2 JOBSET_NAME=s",
			want: "REPLICATED_JOB_NAME is not"},
		{name: "restart", vars: "RANK=0 WORLD_SIZE=1 TORCHELASTIC_RESTART_COUNT=x",
			want: "TORCHELASTIC_RESTART_COUNT=x"},
	} {
		_, err := launch.Find(environment(c.vars, c.host, pod), c.flags)
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		var conflict *launch.ConflictError
		if strings.Contains(c.want, "contradicts") != errors.As(err, &conflict) {
			t.Errorf("%s: %T", c.name, err)
		}
	}
}

func TestHosts(t *testing.T) {
	for list, want := range map[string]string{
		"a":                 "a",
		"n[01-04,7]":        "n01 n02 n03 n04 n7",
		"n[1-2],login,m[3]": "n1 n2 login m3",
		"r[1-2]n[1-2]-ib":   "r1n1-ib r1n2-ib r2n1-ib r2n2-ib",
		"n[098-101]":        "n098 n099 n100 n101",
		"a.b,c":             "a.b c",
	} {
		got, err := launch.Hosts(list)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %v", list, got, err)
		}
	}
	for _, list := range []string{"", ",", "a,", "n[", "n]", "n[1", "n[]", "n[2-1]", "n[a-b]",
		"n[-1]", "n[1-99999999]", "n[[1]]", "n[1-300]m[1-300]", "a b", "n[1]]"} {
		if got, err := launch.Hosts(list); err == nil {
			t.Errorf("%q: %d hosts, no error", list, len(got))
		}
	}
}

// TestHostsOfAnything: no text makes it fail in another way than by an error, or a list
// of more than the bound.
func TestHostsOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.StringMatching(`[a0-9\[\],-]{0,24}`).Draw(t, "list")
		hosts, err := launch.Hosts(list)
		if err == nil && (len(hosts) == 0 || len(hosts) > 1<<16) {
			t.Fatalf("%d hosts", len(hosts))
		}
	})
}

// TestTorchrun: what the real launcher says, where it is installed.
func TestTorchrun(t *testing.T) {
	torchrun, err := exec.LookPath("torchrun")
	if err != nil || !longtest.Enabled() {
		t.Skip("no torchrun, or no GOMEM_LONG=1: it takes seconds to start")
	}
	cmd := exec.Command(torchrun, "--standalone", "--nproc_per_node", "2", "--no_python",
		"-r", "1", "-t", "1", os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), roleVar+"=find")
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("torchrun does not run here: %v", err)
	}
	for _, want := range []string{"torchrun 0/2 local 0/2", "torchrun 1/2 local 1/2"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}
