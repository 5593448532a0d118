// Package chaos runs the local bundle under load while its parts fail, then counts what happened. make chaos runs it.
//
// The parts are real: processes, HTTP and the embedded database. Toxiproxy fails the connections between the functions
// and the operator, the database and the merchants' servers. Processes are killed, and the database's disk is full for
// a while. A printed seed chooses the faults. At the end the faults stop. Every order must then be final or listed for
// a person, with at most one effect, and every notification delivered or a dead letter.
//
// The gateway is a child process, which is the test binary itself with the settings in CHAOS_GATEWAY.
package chaos
