package cluster_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/gomem/gomem/distrib/cluster/launch"
)

// object is what matters here of a Kubernetes object; anything else is kept as it is.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec map[string]any `json:"spec"`
}

func objects(t *testing.T, file string) (all []object) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range bytes.Split(text, []byte("\n---\n")) {
		var o object
		if err := yaml.UnmarshalStrict(part, &o); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, o)
	}
	return all
}

// at follows names and indices into what YAML is.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, p := range path {
		switch p := p.(type) {
		case string:
			v = v.(map[string]any)[p]
		case int:
			v = v.([]any)[p]
		}
		if v == nil {
			t.Fatalf("there is no %v in %v", p, path)
		}
	}
	return v
}

// pods checks a Job's specification and has each of its pods find its place.
func pods(t *testing.T, spec any, hostname func(i int) string, domain string,
	env map[string]string) {
	t.Helper()
	n := int(at(t, spec, "completions").(float64))
	if at(t, spec, "completionMode") != "Indexed" || at(t, spec, "parallelism") != float64(n) {
		t.Error("not all workers are there at once")
	}
	worker := at(t, spec, "template", "spec", "containers", 0)
	args := at(t, worker, "args").([]any)
	i := slices.Index(args, any("--workers"))
	if i < 0 || args[i+1] != fmt.Sprint(n) {
		t.Errorf("arguments %v for %d pods", args, n)
	}
	if e := at(t, worker, "env", 0); at(t, e, "name") != launch.TokenFile {
		t.Errorf("environment %v", e)
	}
	for rank := range n {
		vars := map[string]string{"JOB_COMPLETION_INDEX": fmt.Sprint(rank)}
		for k, v := range env {
			vars[k] = v
		}
		host := hostname(rank)
		w, err := launch.Find(launch.Environment{Lookup: lookup(vars), Hostname: host,
			Hosts: fmt.Sprintf("127.0.0.1 localhost\n10.0.0.9 %s.%s %[1]s\n", host, domain),
		}, launch.Flags{Size: n})
		if err != nil {
			t.Fatalf("pod %d: %v", rank, err)
		}
		if w.Rank != rank || w.Size != n || w.Master != hostname(0)+"."+domain+":29400" {
			t.Errorf("pod %d: %+v", rank, w)
		}
	}
}

func lookup(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

func TestKubernetes(t *testing.T) {
	all := objects(t, "kubernetes.yaml")
	if len(all) != 2 || all[0].Kind != "Service" || all[1].Kind != "Job" {
		t.Fatalf("objects %+v", all)
	}
	service, job := all[0], all[1]
	if at(t, service.Spec, "clusterIP") != "None" ||
		at(t, service.Spec, "selector", "job-name") != job.Metadata.Name ||
		at(t, job.Spec, "template", "spec", "subdomain") != service.Metadata.Name {
		t.Error("the service does not give the job's pods names")
	}
	pods(t, job.Spec, func(i int) string { return fmt.Sprint(job.Metadata.Name, "-", i) },
		service.Metadata.Name+".default.svc.cluster.local", nil)
}

func TestJobSet(t *testing.T) {
	set := objects(t, "jobset.yaml")[0]
	if set.Kind != "JobSet" || at(t, set.Spec, "network", "enableDNSHostnames") != true {
		t.Fatalf("%+v", set)
	}
	name := at(t, set.Spec, "replicatedJobs", 0, "name").(string)
	job := at(t, set.Spec, "replicatedJobs", 0, "template", "spec")
	env := at(t, job, "template", "spec", "containers", 0, "env").([]any)
	var names []string
	for _, e := range env {
		names = append(names, at(t, e, "name").(string))
	}
	if !slices.Equal(names, []string{launch.TokenFile, "JOBSET_NAME", "REPLICATED_JOB_NAME"}) {
		t.Errorf("environment %v", names)
	}
	host := func(i int) string { return fmt.Sprintf("%s-%s-0-%d", set.Metadata.Name, name, i) }
	pods(t, job, host,
		set.Metadata.Name+".default.svc.cluster.local",
		map[string]string{"JOBSET_NAME": set.Metadata.Name, "REPLICATED_JOB_NAME": name})
}

// script runs a script with a home of its own and programs that stand in for others.
func script(t *testing.T, home string, env []string, args ...string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("scripts need bash")
	}
	c := exec.Command("bash", args...)
	c.Env = append(os.Environ(), append(env, "HOME="+home)...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/bash\nset -eu\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSlurm runs the batch script with an srun that sets what Slurm's sets, for each task.
func TestSlurm(t *testing.T) {
	home, bin := t.TempDir(), t.TempDir()
	write(t, filepath.Join(bin, "srun"), `while [[ $1 == --* ]]; do shift; done
for i in 0 1; do
  SLURM_PROCID=$i SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_STEP_ID=0 SLURM_JOB_ID=7 \
    SLURM_STEP_NODELIST='n[01-02]' "$@"
done
`)
	write(t, filepath.Join(bin, "gomem-cluster"),
		`echo "$SLURM_PROCID $GOMEM_TOKEN_FILE $*"; test -d "$(dirname "$GOMEM_TOKEN_FILE")"
`)
	out := script(t, home, []string{"SLURM_JOB_ID=7", "PATH=" + bin + ":" + os.Getenv("PATH")},
		"slurm.sbatch")
	job := filepath.Join(home, "gomem", "7")
	want := fmt.Sprintf("0 %[1]s/token doctor\n1 %[1]s/token doctor\n"+
		"0 %[1]s/token train --model transformer --save %[1]s/run\n"+
		"1 %[1]s/token train --model transformer --save %[1]s/run\n", job)
	if out != want {
		t.Errorf("%s\nwant\n%s", out, want)
	}
	if s, err := os.Stat(job); err != nil || s.Mode().Perm() != 0o700 {
		t.Errorf("the token's directory: %v, %v", s.Mode(), err)
	}
	w, err := launch.Find(launch.Environment{Lookup: lookup(map[string]string{
		"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_LOCALID": "0", "SLURM_STEP_ID": "0",
		"SLURM_JOB_ID": "7", "SLURM_STEP_NODELIST": "n[01-02]"})}, launch.Flags{})
	if err != nil || w.Rank != 1 || w.Size != 2 || !strings.HasPrefix(w.Master, "n01:") {
		t.Errorf("%+v, %v", w, err)
	}
}

func TestTorchrun(t *testing.T) {
	bin := t.TempDir()
	stub := write(t, filepath.Join(bin, "stub"), `echo "$RANK of $WORLD_SIZE at $MASTER_ADDR: $*"
`)
	out := script(t, t.TempDir(), []string{"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=node0",
		"GOMEM=" + stub}, "torchrun.sh", "train", "--model", "gpt")
	if out != "1 of 2 at node0: train --model gpt\n" {
		t.Error(out)
	}
}

// TestSSH starts three workers by an ssh that stays on this machine: each host has a home,
// and the token of rank 0's gets into all.
func TestSSH(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	ssh := write(t, filepath.Join(bin, "ssh"), `home="$HOME/$1"; mkdir -p "$home"; cd "$home"
HOME="$home" exec bash -c "$2"
`)
	gomem := write(t, filepath.Join(bin, "gomem"), `
if [ "$RANK" = 0 ]; then
  echo secret >"$GOMEM_TOKEN_FILE.new"; mv "$GOMEM_TOKEN_FILE.new" "$GOMEM_TOKEN_FILE"
  until [ "$(ls ../node*/done 2>/dev/null | wc -l)" = 2 ]; do sleep 0.05; done
fi
echo "$RANK of $WORLD_SIZE at $MASTER_ADDR has $(cat "$GOMEM_TOKEN_FILE"), $# words: $*"
touch done
`)
	out := script(t, dir, []string{"SSH=" + ssh, "GOMEM=" + gomem}, "ssh.sh", "node0", "node1",
		"node2", "--", "train", "--save", "two words")
	got := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(got)
	for i, line := range got {
		want := fmt.Sprintf("%d of 3 at node0 has secret, 3 words: train --save two words", i)
		if line != want || len(got) != 3 {
			t.Errorf("%q, want %q", line, want)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "*", ".gomem", "token*"))
	if err != nil || len(left) > 0 {
		t.Errorf("tokens are left behind: %v, %v", left, err)
	}
}
