package lambda

// ProcessorMB is the memory with which Lambda gives a function one processor. With less it has that part of one.
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html, 2026-11-27.
const ProcessorMB = 1769
