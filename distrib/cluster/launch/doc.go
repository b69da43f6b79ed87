// Package launch says which rank of a job this process is, and starts jobs on one
// machine.
//
// Sites have launchers: srun, mpirun, torchrun, Kubernetes. All of them start a process
// many times and tell each by its environment which one it is, so there is nothing to
// launch here, only to read: [Find] knows their variables. What they leave open (a port,
// the size of a Kubernetes job) flags or WORLD_SIZE and MASTER_PORT add; what they say
// twice must agree, and if it does not, the error names both and their values, since a
// job whose processes disagree about its size hangs, and says nothing.
//
// Who comes first when there are several: torchrun, which is started by the others;
// mpirun's own variables before Slurm's, since its daemons are started by srun and leave
// theirs behind; a Slurm step before plain PMI or PMIx variables that it sets as well. A
// batch script's own process is no step, and is a job of one.
//
// The address of rank 0 is the launcher's, or where the site's conventions put it: the
// first host of a Slurm step, pod 0 of an indexed job or of a JobSet, in the domain that
// this pod's own name has. A job that fits on this machine meets on loopback.
//
// [Local] is the one launcher there is: as many processes of one executable as asked
// for, on this machine, with torchrun's variables. Secrets travel in a file whose name
// is in the environment, never as arguments, which every user of a machine can read.
//
// The package uses the standard library and scratch alone.
package launch
