// Package command is the command line of gomem: what cmd/gomem runs, and cmd/gomem-cluster
// with the [Extras] that several processes need.
package command
