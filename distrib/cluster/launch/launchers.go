package launch

import (
	"fmt"
	"net"
	"strings"
)

// launcher is how one of them tells a process its place: variables, the first that is set.
type launcher struct {
	name             string
	rank, size       []string
	local, localSize []string
	job, restart     []string
	needs            []string           // one of them must be set, too
	jobName          func(*said) string // in place of job
	host             func(*said) string // of rank 0, if no variable says so
	port             func(*said) int    // if MASTER_PORT does not
}

// launchers are the ones known, in the order in which they are looked for.
func launchers() []launcher {
	return []launcher{
		{name: "torchrun", rank: []string{"RANK"}, size: []string{"WORLD_SIZE"},
			local: []string{"LOCAL_RANK"}, localSize: []string{"LOCAL_WORLD_SIZE"},
			job: []string{"TORCHELASTIC_RUN_ID"}, restart: []string{"TORCHELASTIC_RESTART_COUNT"}},
		{name: "Open MPI", rank: []string{"OMPI_COMM_WORLD_RANK"},
			size:      []string{"OMPI_COMM_WORLD_SIZE"},
			local:     []string{"OMPI_COMM_WORLD_LOCAL_RANK"},
			localSize: []string{"OMPI_COMM_WORLD_LOCAL_SIZE"},
			job:       []string{"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}, host: mpiHost},
		{name: "Slurm", rank: []string{"SLURM_PROCID"},
			size:  []string{"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
			local: []string{"SLURM_LOCALID"}, restart: []string{"SLURM_RESTART_COUNT"},
			needs: []string{"SLURM_STEP_ID", "SLURM_STEPID"}, jobName: slurmJob,
			host: slurmHost, port: slurmPort},
		{name: "PMI", rank: []string{"PMI_RANK"}, size: []string{"PMI_SIZE"},
			local: []string{"MPI_LOCALRANKID"}, localSize: []string{"MPI_LOCALNRANKS"},
			job: []string{"PMI_JOBID"}, host: slurmHost},
		{name: "PMIx", rank: []string{"PMIX_RANK"}, job: []string{"PMIX_NAMESPACE"},
			host: slurmHost},
		{name: "Kubernetes", rank: []string{"JOB_COMPLETION_INDEX"}, jobName: podJob,
			host: podHost},
	}
}

// launcher is who started this process.
func (s *said) launcher() launcher {
	for _, l := range launchers() {
		if name, _ := s.get(l.rank...); name == "" {
			continue
		}
		if name, _ := s.get(l.needs...); name != "" || l.needs == nil {
			return l
		}
	}
	if s.flags.Rank != nil {
		return launcher{name: "flags"}
	}
	return launcher{name: "none"}
}

// mpiHost is where mpirun is: "1.0;tcp://10.0.0.1,192.168.0.1:4567".
func mpiHost(s *said) string {
	_, uri := s.get("OMPI_MCA_orte_hnp_uri", "PMIX_SERVER_URI41", "PMIX_SERVER_URI4")
	_, address, ok := strings.Cut(uri, "tcp://")
	if !ok {
		_, address, ok = strings.Cut(uri, "tcp4://")
	}
	if !ok {
		return slurmHost(s)
	}
	address, _, _ = strings.Cut(address, ";")
	if h, _, err := net.SplitHostPort(address); err == nil {
		address = h
	}
	address, _, _ = strings.Cut(address, ",")
	return address
}

// slurmJob is job.step, which two steps of a job do not share.
func slurmJob(s *said) string {
	_, job := s.get("SLURM_JOB_ID", "SLURM_JOBID")
	_, step := s.get("SLURM_STEP_ID", "SLURM_STEPID")
	return "slurm-" + job + "." + step
}

// slurmHost is the first host of the step, or of the allocation.
func slurmHost(s *said) string {
	name, list := s.get("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST")
	if name == "" {
		return ""
	}
	hosts, err := Hosts(list)
	if err != nil {
		s.fail(fmt.Errorf("%s: %w", name, err))
		return ""
	}
	return hosts[0]
}

// slurmPort is a port below the system's own range that two steps on a shared node
// seldom have in common.
func slurmPort(s *said) int {
	job, step := s.first("SLURM_JOB_ID", "SLURM_JOBID"), s.first("SLURM_STEP_ID", "SLURM_STEPID")
	return 16384 + (job.n*8+step.n%8)%16384
}

// podJob is the pod's name without its index, which is the job's name.
func podJob(s *said) string { return strings.TrimSuffix(s.env.Hostname, "-"+podIndex(s)) }

func podIndex(s *said) string {
	_, index := s.get("JOB_COMPLETION_INDEX")
	return index
}

// podHost is pod 0 of this pod's job: name-0 in this pod's own domain. The pods of a
// JobSet are set-job-replica-index: those of several replicas have no common index, and
// RANK must be set.
func podHost(s *said) string {
	if name, set := s.get("JOBSET_NAME"); name != "" {
		return setHost(s, set)
	}
	domain := podDomain(s)
	if domain == "" {
		s.fail(fmt.Errorf("pod %s has no domain, so pod 0 has no address: give the job a headless "+
			"service and its pods that subdomain, or set MASTER_ADDR", s.env.Hostname))
		return ""
	}
	return podJob(s) + "-0." + domain
}

// setHost is pod 0 of job 0 of this pod's replicated job.
func setHost(s *said, set string) string {
	_, job := s.get("REPLICATED_JOB_NAME")
	if name, replica := s.get("JOB_INDEX"); name != "" && replica != "0" {
		s.fail(fmt.Errorf("JOB_INDEX=%s: a JobSet with several replicas of a job has no rank in "+
			"JOB_COMPLETION_INDEX: set RANK and WORLD_SIZE", replica))
	}
	if job == "" {
		s.fail(fmt.Errorf("JOBSET_NAME=%s is set, REPLICATED_JOB_NAME is not", set))
		return ""
	}
	domain := podDomain(s)
	if domain == "" {
		domain = set
	}
	return set + "-" + job + "-0-0." + domain
}

// podDomain is the domain of this pod, which the line of its name in /etc/hosts has.
func podDomain(s *said) string {
	for line := range strings.Lines(s.env.Hosts) {
		line, _, _ = strings.Cut(line, "#")
		for _, name := range strings.Fields(line) {
			if domain, ok := strings.CutPrefix(name, s.env.Hostname+"."); ok && domain != "" {
				return domain
			}
		}
	}
	return ""
}
