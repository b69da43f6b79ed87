// Package cluster is what [command.Cluster] asks for, on etcd and gRPC: it launches
// processes, finds out which one this is, and has it join its job.
//
// All that must be known beforehand is where process 0 is. With TLS, process 0 makes an
// authority and writes a token to a file; at its address it answers those who have the
// token, with a certificate and where etcd is. Without, etcd itself is at that address.
// Through etcd the processes agree on a view, who they are and where, and from then on
// they talk to each other directly.
package cluster
