// Package trust is how the processes of a job know each other: a certificate authority
// that lives as long as the job, and a token that lets a process join it.
//
// Rank 0 makes the authority ([New]) and a [Token], which has the fingerprint of the
// authority's certificate and a secret, and puts it into a file that only its user can
// read. Whoever is given the file can join: it connects to rank 0, checks that the
// certificate it is shown comes from the authority of that fingerprint, so that it does
// not tell the secret to somebody else, sends the secret and a request, and gets a
// certificate for a day ([Join], [Server]). This is how kubeadm's nodes join. From there
// on every connection of the job, etcd's and the data's, is TLS 1.3 with certificates on
// both sides ([Identity.Server], [Identity.Client]); certificates are renewed in time
// ([Identity.Keep]), connections that are open outlive them.
//
// A certificate has its member's name, which those who connect compare with who the other one says
// it is; a second one of that name is given to nobody as long as the member is there
// ([Server.Taken]), but to itself. Who has the token can ask for a name that nobody has yet: that
// is as much as one token for all can do. Otherwise members trust each other, who could send wrong
// gradients. Names of hosts are not checked, since addresses change from job to job.
//
// Who has no certificate can cost little: a [Gate] bounds the connections that have not
// authenticated, in all and by host, and how many come a second; a handshake has seconds,
// a request a few KiB. A wrong token is answered by the end of the connection.
//
// Secrets are not printed: not by fmt, in any form, nor in errors. There is no telling
// from memory that is swapped out.
package trust
