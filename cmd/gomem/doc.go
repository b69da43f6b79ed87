// Command gomem trains neural networks that do not fit in device memory, under
// a hard memory budget.
//
//	gomem train --model moe --partition 200
//	gomem predict --from run1 < lines.txt
//	gomem eval --from run1 --data tsv:test.tsv
//	gomem plan --size base --device-memory 12GiB
//	gomem devices
//	gomem version
//
// Every command explains itself with --help. Results go to standard output,
// errors and logs to standard error. The exit status is 0 for success, 1 for a
// failure and 2 for a command line that makes no sense; an error is one line.
package main
