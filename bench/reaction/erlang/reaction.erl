%% How late a process of priority max runs while another one computes on every scheduler: reaction.h in Erlang.
%%
%% Run as `erl -noshell -pa DIRECTORY -s reaction main -extra loop|libc`. The number of schedulers is the caller's to choose (+S); there are as many
%% hogs. Timers go by whole milliseconds. For the C library's hogs, a function of the runtime that is written in C makes text from a number.
-module(reaction).
-export([main/0]).

main() ->
    Hog = case init:get_plain_arguments() of
        ["loop"] -> fun loop/2;
        ["libc"] -> fun format/2;
        _ ->
            io:format(standard_error, "usage: reaction loop|libc~n", []),
            halt(2)
    end,
    Wakes = case os:getenv("BENCH_QUICK") of "1" -> 100; _ -> 300 end,
    {Pid, Monitor} = spawn_opt(fun() -> high(Hog, Wakes) end, [monitor, {priority, max}]),
    receive
        {'DOWN', Monitor, process, Pid, {late, Late}} when length(Late) =:= Wakes ->
            Sorted = [Ns / 1.0e3 || Ns <- lists:sort(Late)],
            io:format("p50 ~.3f~np99 ~.3f~nmax ~.3f~n",
                      [lists:nth(Wakes div 2 + 1, Sorted), lists:nth(Wakes * 99 div 100 + 1, Sorted), lists:last(Sorted)]),
            halt(0);
        {'DOWN', Monitor, process, Pid, Reason} ->
            io:format(standard_error, "~p~n", [Reason]),
            halt(1)
    end.

high(Hog, Wakes) ->
    Hogs = [counters:new(1, []) || _ <- lists:seq(1, erlang:system_info(schedulers_online))],
    [spawn(fun() -> Hog(Turns, 1) end) || Turns <- Hogs],
    until_all_run(Hogs),
    AtFirst = [counters:get(Turns, 1) || Turns <- Hogs],
    Late = wake(Wakes, 1, []),
    [exit(a_hog_stood_still) || {Turns, Before} <- lists:zip(Hogs, AtFirst), counters:get(Turns, 1) =:= Before],
    exit({late, Late}).

until_all_run(Hogs) ->
    case lists:all(fun(Turns) -> counters:get(Turns, 1) > 0 end, Hogs) of
        true -> ok;
        false -> timer:sleep(1), until_all_run(Hogs)
    end.

%% Two to four milliseconds between two times.
wake(0, _, Late) -> Late;
wake(Wakes, Seed, Late) ->
    Next = Seed * 16807 rem 2147483647,
    Due = erlang:monotonic_time(millisecond) + 2 + Next rem 3,
    Timer = erlang:start_timer(Due, self(), due, [{abs, true}]),
    receive {timeout, Timer, due} -> ok end,
    case erlang:monotonic_time(nanosecond) - Due * 1000000 of
        Ns when Ns >= 0 -> wake(Wakes - 1, Next, [Ns | Late]);
        _ -> exit(woken_too_early)
    end.

loop(Turns, N) ->
    counters:add(Turns, 1, 1),
    loop(Turns, N + 1).

format(Turns, N) ->
    <<_/binary>> = float_to_binary(N / 7, [{scientific, 12}]),
    counters:add(Turns, 1, 1),
    format(Turns, N + 1).
