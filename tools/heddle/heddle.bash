# heddle.bash - what bash completes for `heddle`: commands, options, policies, programs.
# shellcheck shell=bash disable=SC2207 # words of compgen

# Offers those of the words that begin with $word. Where bash takes a colon for the end of a word, it has what stands before it.
_heddle_offer() {
	COMPREPLY=($(compgen -W "$*" -- "$word"))
	if [[ $COMP_WORDBREAKS == *:* ]]; then
		COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*:}"}"}")
	fi
}

# Offers the words for what stands behind the last comma.
_heddle_offer_more() {
	local before=${word%"${word##*,}"}
	COMPREPLY=($(compgen -P "$before" -W "$*" -- "${word##*,}"))
	compopt -o nospace
}

_heddle_programs() {
	compopt -o filenames
	COMPREPLY=($(compgen -c -- "$word") $(compgen -f -- "$word"))
}

# How many words there are between the command and the cursor that are neither options nor the values of those in $1.
_heddle_count() {
	local i
	plain=0
	for ((i = 2; i < ${#words[@]} - 1; i++)); do
		if [[ " $1 " == *" ${words[i]} "* ]]; then
			((i++))
		elif [[ ${words[i]} != -* || plain -gt 0 ]]; then
			((plain++))
		fi
	done
}

_heddle_explore() {
	_heddle_count '--schedules --time --policy --fail --workers --seed --steps --jobs --checkpoint'
	if ((plain > 0)); then
		compopt -o default
		return
	fi
	case $last in
	--policy) _heddle_offer random pct:2 pct:3 robin exhaustive:1 exhaustive:2 exhaustive:3 ;;
	--fail) _heddle_offer_more malloc alloc map guard time eintr ;;
	--time) _heddle_offer 30s 5m 1h ;;
	--checkpoint) compopt -o default ;;
	--schedules | --workers | --seed | --steps | --jobs) ;;
	*)
		if [[ $word == -* ]]; then
			_heddle_offer --schedules --time --policy --fail --workers --seed --steps --jobs --checkpoint --no-leaks \
				--quiet --help
		else
			_heddle_programs
		fi
		;;
	esac
}

_heddle_replay() {
	_heddle_count ''
	if ((plain > 1)); then
		compopt -o default
	elif ((plain == 1)); then
		_heddle_programs
	elif [[ $word == -* ]]; then
		_heddle_offer --trace --trace= --gdb --help
	else
		compopt -o nospace
		_heddle_offer random: pct:3: robin list:
	fi
}

_heddle_run() {
	_heddle_count --cc
	if ((plain > 0)); then
		compopt -o default
	elif [[ $last == --cc ]]; then
		COMPREPLY=($(compgen -c -- "$word"))
	elif [[ $word == -* ]]; then
		_heddle_offer --cc --help
	else
		compopt -o filenames
		COMPREPLY=($(compgen -f -X '!*.c' -- "$word") $(compgen -d -- "$word"))
	fi
}

_heddle_lua() {
	_heddle_count '--workers --memory --budget'
	if ((plain > 0)); then
		compopt -o default
	elif [[ $last == --workers || $last == --memory || $last == --budget ]]; then
		return
	elif [[ $word == -* ]]; then
		_heddle_offer --workers --memory --budget --help
	else
		compopt -o filenames
		COMPREPLY=($(compgen -f -X '!*.lua' -- "$word") $(compgen -d -- "$word"))
	fi
}

_heddle_pids() {
	local pid pids=""
	for pid in /proc/[0-9]*; do
		[[ -O $pid ]] && pids+=" ${pid#/proc/}"
	done
	compopt -o filenames
	COMPREPLY=($(compgen -W "$pids" -- "$word") $(compgen -f -- "$word"))
}

_heddle_ps() {
	case $last in
	--state) _heddle_offer ready running waiting suspended ended ;;
	--sort) _heddle_offer id name state priority cpu for switches stack waiters ;;
	--name | --priority | --first) ;;
	*)
		if [[ $word == -* ]]; then
			_heddle_offer --state --name --priority --sort --first --json --help
		else
			_heddle_pids
		fi
		;;
	esac
}

_heddle_waits() {
	if [[ $word == -* ]]; then
		_heddle_offer --all --dot --help
	else
		_heddle_pids
	fi
}

_heddle_bt() {
	_heddle_count --root
	if [[ $last == --root ]]; then
		compopt -o dirnames
	elif [[ $word == -* ]]; then
		_heddle_offer --stop --all --json --root --resolve --help
	elif ((plain == 0)); then
		_heddle_pids
	fi
}

_heddle_web() {
	if [[ $word == -* ]]; then
		_heddle_offer --port --listen --help
	elif [[ $last != --port && $last != --listen ]]; then
		_heddle_pids
	fi
}

_heddle_trace() {
	case $last in
	--seconds | --size | --events | --processes) ;;
	-o | --output) compopt -o default ;;
	*)
		if [[ $word == -* ]]; then
			_heddle_offer --seconds --output --size --events --processes --help
		else
			_heddle_pids
		fi
		;;
	esac
}

_heddle_stats() {
	if [[ $word == -* ]]; then
		_heddle_offer --json --prometheus --latency --help
	elif [[ $last != --latency ]]; then
		_heddle_pids
	fi
}

_heddle_top() {
	if [[ $last == --sort ]]; then
		_heddle_offer cpu wait queue
	elif [[ $word == -* ]]; then
		_heddle_offer --sort --delay --once --help
	elif [[ $last != --delay ]]; then
		_heddle_pids
	fi
}

_heddle() {
	local line=${COMP_LINE:0:COMP_POINT} words word last plain

	COMPREPLY=()
	read -ra words <<<"$line" # not COMP_WORDS, which is split at colons
	[[ $line == *[[:space:]] ]] && words+=("")
	word=${words[-1]} last=${words[-2]}
	if ((${#words[@]} == 2)); then
		_heddle_offer run lua explore replay ps waits bt stats top trace web help --help --version
		return
	fi
	case ${words[1]} in
	bt | explore | lua | ps | replay | run | stats | top | trace | waits | web) "_heddle_${words[1]}" ;;
	help) _heddle_offer bt explore lua ps replay run waits stats top trace web ;;
	esac
}
complete -F _heddle heddle
