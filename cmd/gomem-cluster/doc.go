// Command gomem-cluster is gomem for several processes: the same commands and flags, and
// those that say who trains together, and how they keep in step.
//
//	gomem-cluster train --local 4
//	srun -N 4 gomem-cluster train --model gpt --token-file ~/token
//	gomem-cluster doctor --local 2
//
// It is a program of its own since etcd and gRPC are in it, which make it several times
// as large.
package main
